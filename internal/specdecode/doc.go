// Package specdecode reads specifications of senders from the syntax trees of YAML documents: for specyaml, whose documents
// are specifications, and for the configuration, in whose documents they are parts.
package specdecode
