package api_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/api"
)

// The API names every action that can leave a record, and no other.
func TestActionsOfTheAuditLog(t *testing.T) {
	code, err := os.ReadFile("../journal/auditlog.go")
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, m := range regexp.MustCompile(`(?m)^\tAction[A-Z]\w* +Action = "(\w+)"`).FindAllStringSubmatch(string(code), -1) {
		actions = append(actions, m[1])
	}
	field, _ := reflect.TypeFor[api.Audit]().FieldByName("Action")
	named := strings.Split(field.Tag.Get("enum"), ",")
	slices.Sort(actions)
	slices.Sort(named)
	if len(actions) < 8 || !slices.Equal(actions, named) {
		t.Errorf("the journal has the actions %q, and the API says %q", actions, named)
	}
}
