// Command image packs the program into a container image, without a daemon and without a base image:
//
//	image -program bin/hookonce -o hookonce.tar
//
// The archive is an OCI layout that docker load takes as well. It depends on the program and the versions of this tool's
// modules alone: the same program gives the same bytes on any machine.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	path := flag.String("program", "bin/hookonce", "the `file` of the program, built for Linux with CGO_ENABLED=0")
	license := flag.String("license", "LICENSE", "the `file` of its licence")
	out := flag.String("o", "hookonce.tar", "the `file` to write")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown argument %q", flag.Arg(0))
	}
	name, err := write(*out, *path, *license)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", *out, name)
}

// write makes the image and stores it in the file out. It returns the image's name.
func write(out, program, license string) (string, error) {
	p, err := readProgram(program)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(license)
	if err != nil {
		return "", err
	}
	img, err := build(p, text)
	if err != nil {
		return "", err
	}
	f, err := os.Create(out)
	if err != nil {
		return "", err
	}
	if err := archive(f, img, p); err != nil {
		f.Close()
		os.Remove(out)
		return "", err
	}
	return p.reference(), f.Close()
}
