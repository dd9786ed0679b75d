//go:build race

package testskip

const watched = true
