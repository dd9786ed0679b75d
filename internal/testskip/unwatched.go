//go:build !race

package testskip

const watched = false
