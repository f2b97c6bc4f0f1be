//go:build !unit

package rig

// unitOnly tells that servers must not be started.
const unitOnly = false
