package frame

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assetPath is where assets are, each under a name that changes with its content.
const assetPath = "/assets/"

// asset is a file that pages load.
type asset struct {
	name    string // app.1a2b3c4d.css
	kind    string // its media type
	content []byte
}

// assets has each asset under its own name and under that with the hash.
var assets = func() map[string]*asset {
	all := map[string]*asset{}
	files, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, f := range files {
		content, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(f.Name())
		a := &asset{strings.TrimSuffix(f.Name(), extension) + "." + hex.EncodeToString(sum[:5]) + extension, mediaType(extension), content}
		all[f.Name()], all[a.name] = a, a
	}
	return all
}()

// mediaType returns that of a file. That of scripts is not left to the machine's tables.
func mediaType(extension string) string {
	if extension == ".js" {
		return "text/javascript; charset=utf-8"
	}
	return mime.TypeByExtension(extension)
}

// serveAsset answers with an asset, which browsers keep: under this name it never changes.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, assetPath)
	a := assets[name]
	if a == nil || a.name != name {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", a.kind)
	_, _ = w.Write(a.content)
}
