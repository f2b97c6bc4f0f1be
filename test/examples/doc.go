// Package examples runs the tests of the example modules, each of which has a go.mod of its own, on real servers.
package examples
