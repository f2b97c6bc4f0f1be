// Package inbox tests the consumer loops of inbox/saramainbox and inbox/kgoinbox against real servers, both by the same
// stories, and the consumer program in the folder consumer by killing it.
package inbox
