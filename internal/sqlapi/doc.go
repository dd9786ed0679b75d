// Package sqlapi tests the functions that the migrations install on Postgres: that they keep the laws of
// the library, agree with it where both work on one table, and can be called from other languages.
package sqlapi
