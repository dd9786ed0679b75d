package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// uid is whom the program runs as: nobody that any system has given a file.
const uid = 65532

// Where things are in the image.
const (
	roots   = "etc/ssl/certs/ca-certificates.crt" // where Go looks first
	binary  = "usr/bin/hookonce"
	licence = "usr/share/doc/hookonce/LICENSE"
	data    = "data" // the working folder: the default store is made in it
)

// build puts the image together: what seldom changes is a layer of its own.
func build(p *program, license []byte) (v1.Image, error) {
	var layers []v1.Layer
	for _, files := range [][]entry{surroundings(), {
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: binary, mode: 0o755, text: p.text},
		{name: "usr/share/", mode: 0o755}, {name: "usr/share/doc/", mode: 0o755}, {name: "usr/share/doc/hookonce/", mode: 0o755},
		{name: licence, mode: 0o644, text: license},
	}} {
		l, err := layer(files)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, config(img, p))
}

// config says how the image is run.
func config(img v1.Image, p *program) *v1.ConfigFile {
	appended, err := img.ConfigFile()
	if err != nil {
		panic(err) // it was made a moment ago, in memory
	}
	return &v1.ConfigFile{
		Architecture: p.arch,
		OS:           "linux",
		Created:      v1.Time{Time: p.committed.UTC()},
		RootFS:       appended.RootFS,
		Config: v1.Config{
			User:       "65532:65532",
			WorkingDir: "/" + data,
			Entrypoint: []string{"/" + binary},
			Cmd:        []string{"serve"},
			// Loopback, the default, is the container's own: nobody could post to it from outside.
			Env:          []string{"PATH=/usr/bin", "HOOKONCE_LISTEN=0.0.0.0:8080"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
			Volumes:      map[string]struct{}{"/" + data: {}},
			StopSignal:   "SIGTERM",
			Healthcheck: &v1.HealthConfig{
				Test:     []string{"CMD", "/" + binary, "status", "--ready"},
				Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
			},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "hookonce",
				"org.opencontainers.image.description": "Receive webhooks once",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     p.version,
				"org.opencontainers.image.revision":    p.revision,
			},
		},
	}
}

// entry is a file, or a folder if its name ends with a slash.
type entry struct {
	name string
	mode fs.FileMode
	uid  int
	text []byte
}

// surroundings are what the program expects to find on a system.
func surroundings() []entry {
	return []entry{
		{name: data + "/", mode: 0o700, uid: uid},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nhookonce:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/:/sbin/nologin\nhookonce:x:65532:65532:hookonce:/data:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: roots, mode: 0o644, text: trusted()},
		{name: "tmp/", mode: 0o777 | fs.ModeSticky}, // SQLite sorts in it what is too large for memory
	}
}

// trusted are the roots that browsers trust. Those that they trust under a condition are left out: a file has no
// place for it.
func trusted() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// layer packs files, none of which has a time: an image of the same files is the same image.
func layer(files []entry) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := put(w, f); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}

func put(w *tar.Writer, f entry) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.text)), Uid: f.uid, Gid: f.uid, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	h.Mode = int64(f.mode.Perm())
	if f.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	if f.text == nil {
		h.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(f.text)
	return err
}
