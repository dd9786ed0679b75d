// Package sqlapi tests the functions that the migrations install on Postgres: that they keep the laws of
// the library, agree with it where both work on one table, and can be called from other languages.
//
// The functions are in postgres_functions.sql of package internal/ddl. This package has tests only.
package sqlapi
