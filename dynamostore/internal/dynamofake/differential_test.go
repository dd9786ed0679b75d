package dynamofake_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"net/http"
	"os"
	"sort"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookonce/hookonce/dynamostore/internal/dynalite"
	"github.com/hookonce/hookonce/dynamostore/internal/dynamofake"
	"pgregory.net/rapid"
)

func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: http.DefaultClient, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "obviously-fake", SecretAccessKey: "obviously-fake"}, nil
		}),
	})
}

type attributes = map[string]types.AttributeValue

// answer is what a stand-in says to a request.
type answer struct {
	code  string // of the error; empty: none
	shown attributes
	items []attributes // in the order of their keys
	n     int32
}

func codeOf(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}

// request is one request, to either of the two.
type request func(c *dynamodb.Client) answer

// TestAgainstDynalite sends the same requests to this stand-in and to dynalite, which somebody else has written, and compares
// the answers: items, and the kinds of errors. What dynalite does not have (transactions, and the item that a condition failed on)
// is not compared.
func TestAgainstDynalite(t *testing.T) {
	testskip.Long(t)
	pair, table := both(t)
	refusals := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for _, c := range pair { // so that what is found does not depend on what was tried before
			empty(t, c, table)
		}
		if rapid.IntRange(0, 2).Draw(rt, "filled") == 0 { // so that there are pages
			for i := range 12 {
				for _, c := range pair {
					put(t, c, table, attributes{"pk": str(fmt.Sprintf("b%d", i)), "a": num(i % 3), "att": str("x")})
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			what, r := drawRequest(rt, table)
			got, want := r(pair[0]), r(pair[1])
			refusals[got.code]++
			if d := cmp.Diff(got, want, cmp.AllowUnexported(answer{}), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(
				types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{})); d != "" {
				rt.Fatalf("%s: -this stand-in +dynalite\n%s", what, d)
			}
		}
	})
	for _, code := range []string{"", "ConditionalCheckFailedException", "ValidationException"} {
		if refusals[code] == 0 {
			t.Errorf("no request was answered %q: the comparison shows too little (%v)", code, refusals)
		}
	}
}

// both returns clients of the two, with an empty table in each.
func both(t *testing.T) (pair [2]*dynamodb.Client, table string) {
	pair = [2]*dynamodb.Client{client(dynamofake.Start(t).URL()), client(dynalite.URL(t))}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, c := range pair {
		createTable(t, c, t.Name())
	}
	return pair, t.Name()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := dynalite.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Every comparison, around its bound, and with what is of another type or not there.
func TestComparisonsAgainstDynalite(t *testing.T) {
	pair, table := both(t)
	for _, c := range pair {
		put(t, c, table, attributes{"pk": str("k"), "n": num(1), "s": str("m")})
	}
	held := 0
	for _, name := range []string{"n", "s", "absence"} {
		for _, operator := range []string{"=", "<>", "<", "<=", ">", ">="} {
			for _, v := range []types.AttributeValue{num(0), num(1), num(2), str("l"), str("m"), str("n")} {
				condition := name + " " + operator + " :v"
				var codes [2]string
				for i, c := range pair {
					_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
						TableName: &table, Key: attributes{"pk": str("k")}, UpdateExpression: aws.String("REMOVE nothing"),
						ConditionExpression: &condition, ExpressionAttributeValues: attributes{":v": v},
					})
					codes[i] = codeOf(err)
				}
				if codes[0] != codes[1] {
					t.Errorf("%s with %v: %q, and dynalite says %q", condition, v, codes[0], codes[1])
				}
				if codes[0] == "" {
					held++
				}
			}
		}
	}
	if held == 0 {
		t.Error("no condition held")
	}
}

// empty deletes every item.
func empty(t *testing.T, c *dynamodb.Client, table string) {
	t.Helper()
	for _, i := range everything(c, table).items {
		_, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: attributes{"pk": i["pk"]}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, c *dynamodb.Client, table string, i attributes) {
	t.Helper()
	if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: i}); err != nil {
		t.Fatal(err)
	}
}

func createTable(t *testing.T, c *dynamodb.Client, table string) {
	t.Helper()
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			return
		}
	}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

// names are attributes, one of them with a name that only a placeholder may stand for.
var names = []string{"a", "b", "att", "#r"}

func drawValue(t *rapid.T) types.AttributeValue {
	switch rapid.IntRange(0, 5).Draw(t, "kind of value") {
	case 0, 1, 2:
		return num(rapid.IntRange(-1, 1).Draw(t, "number"))
	case 3:
		return &types.AttributeValueMemberB{Value: []byte{byte(rapid.IntRange(0, 2).Draw(t, "byte"))}}
	case 4:
		return &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "bool")}
	}
	return str(rapid.SampledFrom([]string{"x", "y", "xy"}).Draw(t, "text"))
}

func drawKey(t *rapid.T) attributes {
	switch rapid.IntRange(0, 30).Draw(t, "key") {
	case 0:
		return attributes{"pk": str("")}
	case 1:
		return attributes{"pk": num(1)}
	case 2:
		return attributes{"other": str("k")}
	}
	return attributes{"pk": str(rapid.SampledFrom([]string{"a1", "a1", "a2", "b1", "b2"}).Draw(t, "text of the key"))}
}

// expressions collects what the expressions of one request name.
type expressions struct {
	names  map[string]string
	values attributes
	count  int // of the values, those that are left out among them
}

// name draws an attribute, seldom one that cannot be named so.
func (e *expressions) name(t *rapid.T) string {
	n := rapid.SampledFrom(names).Draw(t, "name")
	if rapid.IntRange(0, 30).Draw(t, "reserved") == 0 {
		n = "ttl"
	}
	if n == "#r" {
		if e.names == nil {
			e.names = map[string]string{}
		}
		e.names[n] = "ttl"
	}
	return n
}

func (e *expressions) value(t *rapid.T) string { return e.given(t, drawValue(t)) }

// given names a value, which may be left out.
func (e *expressions) given(t *rapid.T, v types.AttributeValue) string {
	if e.values == nil {
		e.values = attributes{}
	}
	name := fmt.Sprintf(":v%d", e.count)
	e.count++
	if rapid.IntRange(0, 40).Draw(t, "undefined") > 0 {
		e.values[name] = v
	}
	return name
}

func (e *expressions) condition(t *rapid.T, depth int) string {
	switch k := rapid.IntRange(0, 9).Draw(t, "condition"); {
	case k == 0:
		return "attribute_exists(pk)"
	case k == 1:
		return "attribute_exists(" + e.name(t) + ")"
	case k == 2:
		return "attribute_not_exists(pk)"
	case k == 3:
		return "attribute_not_exists(" + e.name(t) + ")"
	case k < 7 || depth == 0:
		operator := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(t, "operator")
		if operator != "=" && operator != "<>" {
			return e.name(t) + " " + operator + " " + e.given(t, num(rapid.IntRange(-1, 1).Draw(t, "bound")))
		}
		return e.name(t) + " " + operator + " " + e.value(t)
	}
	operator := rapid.SampledFrom([]string{" AND ", " OR "}).Draw(t, "junction")
	text := e.condition(t, depth-1) + operator + e.condition(t, depth-1)
	if rapid.Bool().Draw(t, "in brackets") {
		return "(" + text + ")"
	}
	return text
}

func (e *expressions) update(t *rapid.T) string {
	text := ""
	if n := rapid.IntRange(0, 3).Draw(t, "set"); n > 0 {
		text = "SET "
		for i := range n {
			text += map[bool]string{true: "", false: ", "}[i == 0] + e.name(t) + " = "
			if rapid.IntRange(0, 2).Draw(t, "arithmetic") == 0 {
				text += e.summand(t) + rapid.SampledFrom([]string{" + ", " - "}).Draw(t, "sign") + e.summand(t)
				continue
			}
			text += e.operand(t)
		}
	}
	if rapid.Bool().Draw(t, "remove") {
		text += " REMOVE " + e.name(t)
	}
	if rapid.IntRange(0, 3).Draw(t, "add") == 0 {
		text += " ADD " + e.name(t) + " " + e.value(t)
	}
	if text == "" {
		return "REMOVE a"
	}
	return text
}

// summand is an operand of which it is not known before whether it is a number.
func (e *expressions) summand(t *rapid.T) string {
	one := num(rapid.IntRange(-2, 3).Draw(t, "summand"))
	switch rapid.IntRange(0, 2).Draw(t, "operand") {
	case 0:
		return "if_not_exists(" + e.name(t) + ", " + e.given(t, one) + ")"
	case 1:
		return e.name(t)
	}
	return e.given(t, one)
}

func (e *expressions) operand(t *rapid.T) string {
	switch rapid.IntRange(0, 4).Draw(t, "operand") {
	case 0:
		return "if_not_exists(" + e.name(t) + ", " + e.value(t) + ")"
	case 1:
		return e.name(t)
	}
	return e.value(t)
}

// drawRequest draws a request, and says what it is.
func drawRequest(t *rapid.T, table string) (string, request) {
	var e expressions
	var condition *string
	if rapid.Bool().Draw(t, "conditional") {
		condition = aws.String(e.condition(t, 2))
	}
	if rapid.IntRange(0, 40).Draw(t, "no such table") == 0 {
		table = "nowhere"
	}
	key := drawKey(t)
	kind := rapid.SampledFrom([]string{"put", "put", "update", "update", "update", "delete", "get", "scan"}).Draw(t, "kind")
	switch kind {
	case "put":
		i := attributes{}
		for name, v := range key {
			i[name] = v
		}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "att", "ttl"}), 0, 3).Draw(t, "attributes") {
			i[name] = drawValue(t)
		}
		in := dynamodb.PutItemInput{TableName: &table, Item: i, ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values}
		return describe("put", condition, "", e), func(c *dynamodb.Client) answer {
			_, err := c.PutItem(context.Background(), &in)
			return answer{code: codeOf(err)}
		}
	case "update":
		update := e.update(t)
		in := dynamodb.UpdateItemInput{
			TableName: &table, Key: key, ConditionExpression: condition, UpdateExpression: &update, ExpressionAttributeNames: e.names,
			ExpressionAttributeValues: e.values, ReturnValues: rapid.SampledFrom([]types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueAllOld, types.ReturnValueNone}).Draw(t, "returns"),
		}
		return describe("update", condition, update, e), func(c *dynamodb.Client) answer {
			out, err := c.UpdateItem(context.Background(), &in)
			if err != nil {
				return answer{code: codeOf(err)}
			}
			return answer{shown: out.Attributes}
		}
	case "delete":
		in := dynamodb.DeleteItemInput{TableName: &table, Key: key, ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: types.ReturnValueAllOld}
		return describe("delete", condition, "", e), func(c *dynamodb.Client) answer {
			out, err := c.DeleteItem(context.Background(), &in)
			if err != nil {
				return answer{code: codeOf(err)}
			}
			return answer{shown: out.Attributes}
		}
	case "get":
		in := dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)}
		return fmt.Sprint("get ", key), func(c *dynamodb.Client) answer {
			out, err := c.GetItem(context.Background(), &in)
			if err != nil {
				return answer{code: codeOf(err)}
			}
			return answer{shown: out.Item}
		}
	}
	return "scan", func(c *dynamodb.Client) answer { return everything(c, table) }
}

func describe(kind string, condition *string, update string, e expressions) string {
	text := fmt.Sprintf("%s if %q: %q", kind, aws.ToString(condition), update)
	for name, v := range e.values {
		text += fmt.Sprintf(", %s is %T %v", name, v, v)
	}
	return text
}

// everything reads a table in pages.
func everything(c *dynamodb.Client, table string) (a answer) {
	pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{TableName: &table, ProjectionExpression: aws.String("pk, att")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			return answer{code: codeOf(err)}
		}
		a.items = append(a.items, page.Items...)
	}
	sort.Slice(a.items, func(i, j int) bool {
		return a.items[i]["pk"].(*types.AttributeValueMemberS).Value < a.items[j]["pk"].(*types.AttributeValueMemberS).Value
	})
	a.n = int32(len(a.items))
	return a
}
