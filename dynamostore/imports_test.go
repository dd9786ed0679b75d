package dynamostore_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a program links with this package: the SDK's client of DynamoDB, and of hookonce what it needs and no other store.
func TestWhatProgramsCarry(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"github.com/hookonce/hookonce", "github.com/hookonce/hookonce/dynamostore", "github.com/aws/smithy-go", "github.com/aws/aws-sdk-go-v2",
		"github.com/aws/aws-sdk-go-v2/service/dynamodb", "github.com/aws/aws-sdk-go-v2/internal/configsources", "github.com/aws/aws-sdk-go-v2/internal/endpoints/v2",
		"github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding", "github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery",
	}
	for line := range strings.Lines(string(out)) {
		module, pkg, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue // the standard library
		}
		if !slices.Contains(allowed, module) {
			t.Errorf("it carries %s of the module %s", pkg, module)
		}
		if name, own := strings.CutPrefix(pkg, "github.com/hookonce/hookonce/"); own && strings.HasSuffix(name, "store") && name != "dynamostore" {
			t.Errorf("it imports %s: stores never import each other", pkg)
		}
	}
}
