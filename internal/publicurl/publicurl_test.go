package publicurl_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/publicurl"
)

func TestValid(t *testing.T) {
	for url, want := range map[string]bool{
		"https://shop.example/in":             true,
		"http://10.0.0.7:3000/in?shop=7":      true,
		"https://user:password@shop.example/": true,
		"HTTPS://shop.example":                true,
		"":                                    false,
		"shop.example/in":                     false,
		"/in":                                 false,
		"https:///in":                         false,
		"https:shop.example":                  false,
		"ftp://shop.example/in":               false,
		"https://shop.example/in#":            false,
		"https://shop.example/in#part":        false,
		"https://shop.example/%zz":            false,
		"https://shop.example:port/in":        false,
	} {
		if got := publicurl.Valid(url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}
