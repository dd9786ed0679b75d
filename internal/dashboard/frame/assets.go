package frame

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
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

// assets returns each asset under its own name and under that with the hash.
var assets = sync.OnceValue(func() map[string]*asset {
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
		a := &asset{strings.TrimSuffix(f.Name(), extension) + "." + hex.EncodeToString(sum[:5]) + extension, mediaTypes[extension], content}
		all[f.Name()], all[a.name] = a, a
	}
	return all
})

// mediaTypes are those of assets. The tables of the machine, which are large, are not asked.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// serveAsset answers with an asset, which browsers keep: under this name it never changes.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, assetPath)
	a := assets()[name]
	if a == nil || a.name != name {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", a.kind)
	_, _ = w.Write(a.content)
}
