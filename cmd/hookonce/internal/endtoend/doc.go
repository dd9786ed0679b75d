// Package endtoend has tests alone: they run the program hookonce as its users do, in processes of its own, with the
// servers, clients and commands that its pages name.
package endtoend
