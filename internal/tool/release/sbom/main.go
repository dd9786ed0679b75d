// Command sbom writes the bill of materials of a program in Go, as CycloneDX 1.6 in JSON: what the go command recorded
// in the program itself, and nothing else, so that the same program has the same bill wherever it is written.
//
//	sbom PROGRAM >PROGRAM.cdx.json
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(to io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	purl := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	self := purl(info.Main.Path, info.Main.Version)
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: self, Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: info.Main.Version, PackageURL: self,
	}}
	standard := purl("std", info.GoVersion[len("go"):])
	components := []cyclonedx.Component{{
		BOMRef: standard, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: standard,
	}}
	uses := []string{standard}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		ref := purl(m.Path, m.Version)
		components = append(components, cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref,
			Properties: &[]cyclonedx.Property{{Name: "go:module:sum", Value: m.Sum}}, // as in go.sum
		})
		uses = append(uses, ref)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self, Dependencies: &uses}}
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}
