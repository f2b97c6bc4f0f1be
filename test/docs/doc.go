// Package docs checks what the documents say against what there is: links and anchors lead somewhere, files and tests that
// are named exist, and so do commands, their flags, and make's targets.
package docs
