// Package storebench measures what docs/storage.md says about the stores, with the durability that they have in
// production: `make bench-stores`. It has benchmarks only.
package storebench
