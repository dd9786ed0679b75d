// Package release tries what scripts/release builds: the tests install, start, upgrade and remove the packages, and run
// the programs for other machines. The command in sbom writes bills of materials.
package release
