package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archive writes an OCI layout in a tar, with the index that docker load looks for.
func archive(out io.Writer, img v1.Image, p *program) error {
	a := &archiver{w: tar.NewWriter(out)}
	for _, folder := range []string{"blobs/", "blobs/sha256/"} {
		a.put(entry{name: folder, mode: 0o755})
	}
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	var layers []string
	for _, l := range manifest.Layers {
		layers = append(layers, a.blob(l.Digest, func() (io.ReadCloser, error) {
			layer, err := img.LayerByDigest(l.Digest)
			if err != nil {
				return nil, err
			}
			return layer.Compressed()
		}))
	}
	config := a.blob(manifest.Config.Digest, text(img.RawConfigFile))
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	a.blob(digest, text(img.RawManifest))
	size, err := img.Size()
	if err != nil {
		return err
	}
	a.json("index.json", &v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: manifest.MediaType, Digest: digest, Size: size,
		Platform: &v1.Platform{OS: "linux", Architecture: p.arch},
		// The first is what the format knows, the second what containerd names it by.
		Annotations: map[string]string{"org.opencontainers.image.ref.name": p.tag(), "io.containerd.image.name": p.reference()},
	}}})
	a.json("manifest.json", []any{map[string]any{"Config": config, "RepoTags": []string{p.reference()}, "Layers": layers}})
	a.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	if a.err != nil {
		return a.err
	}
	return a.w.Close()
}

// archiver writes files until one fails.
type archiver struct {
	w   *tar.Writer
	err error
}

func (a *archiver) put(f entry) {
	if a.err == nil {
		a.err = put(a.w, f)
	}
}

func (a *archiver) json(name string, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil && a.err == nil {
		a.err = err
	}
	a.put(entry{name: name, mode: 0o644, text: b.Bytes()})
}

// blob writes a part of the image, and returns its name in the layout.
func (a *archiver) blob(digest v1.Hash, open func() (io.ReadCloser, error)) string {
	name := "blobs/" + digest.Algorithm + "/" + digest.Hex
	if a.err != nil {
		return name
	}
	r, err := open()
	if err != nil {
		a.err = err
		return name
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		a.err = err
		return name
	}
	a.put(entry{name: name, mode: 0o644, text: all})
	return name
}

// text opens what is there as bytes.
func text(read func() ([]byte, error)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		b, err := read()
		return io.NopCloser(bytes.NewReader(b)), err
	}
}
