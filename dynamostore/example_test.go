package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/dynamostore/internal/dynamofake"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/provider"
)

// connect returns a client of a stand-in, where a program has dynamodb.NewFromConfig.
func connect() (client *dynamodb.Client, done func()) {
	server := httptest.NewServer(dynamofake.New())
	client = backend{url: server.URL}.client(&network{})
	return client, func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		server.Close()
	}
}

// noTest stands for the argument of a test.
type noTest struct{ testing.TB }

func (noTest) Helper()                        {}
func (noTest) Name() string                   { return "example" }
func (noTest) Cleanup(func())                 {}
func (noTest) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// A paid invoice is booked once: the claim and the booking are one transaction.
func Example() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	store := dynamostore.New(client)
	if err := errors.Join(store.CreateTable(ctx), dynamostore.New(client, dynamostore.WithTable("accounts")).CreateTable(ctx)); err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe("whsec_test")
	// Nothing is sent before the handler has returned.
	book := func(ctx context.Context, b *dynamostore.Batch, ev *hookonce.Event) error {
		return b.Update(types.Update{
			TableName:                 aws.String("accounts"),
			Key:                       key("account#7"),
			UpdateExpression:          aws.String("ADD balance :amount"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: "100"}},
		})
	}
	handler := hookonce.Webhook(store, "stripe", stripe, book, hookonce.WithLogger(slog.New(slog.DiscardHandler)))

	for range 3 {
		fmt.Println(hookoncetest.Deliver(noTest{}, handler, stripe, "evt_1").StatusCode)
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("accounts"), Key: key("account#7"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance", out.Item["balance"].(*types.AttributeValueMemberN).Value)
	// Output:
	// 200
	// 200
	// 200
	// balance 100
}

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}

// A handler says beforehand what it means if one of its conditions does not hold.
func ExampleBatch_OnRefused() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	store := dynamostore.New(client)
	if err := errors.Join(store.CreateTable(ctx), dynamostore.New(client, dynamostore.WithTable("accounts")).CreateTable(ctx)); err != nil {
		log.Fatal(err)
	}
	request := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "payouts", Key: "po_1"}}
	_, err := store.Within(ctx, request, func(b *dynamostore.Batch, _ hookonce.Claim) error {
		b.OnRefused(func(e *dynamostore.ItemError) error {
			if e.Index == 0 && e.Code == "ConditionalCheckFailed" {
				return hookonce.Permanent(errors.New("the account does not have the money"))
			}
			return nil // anything else is tried again
		})
		return b.Update(types.Update{
			TableName: aws.String("accounts"), Key: key("account#7"),
			UpdateExpression: aws.String("SET balance = balance - :amount"), ConditionExpression: aws.String("balance >= :amount"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: "100"}},
		})
	})
	fmt.Println(hookonce.IsPermanent(err), strings.HasSuffix(err.Error(), "the account does not have the money"))
	// Output: true true
}

// A transaction of the caller's own.
func ExampleNewBatch() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	store := dynamostore.New(client)
	if err := store.CreateTable(ctx); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		b := dynamostore.NewBatch()
		claim, err := store.ClaimTx(ctx, b, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "imports", Key: "file-1"}})
		if err == nil && claim.Verdict == hookonce.Acquired {
			err = store.Commit(ctx, b) // with what else was added
		}
		fmt.Println(claim.Verdict, err)
	}
	// Output:
	// accepted <nil>
	// duplicate <nil>
}

// A program says when it starts what its table can lose or double.
func ExampleStore_Inspect() {
	client, done := connect()
	defer done()
	store := dynamostore.New(client, dynamostore.WithTable("hookonce-production"), dynamostore.WithRetention(180*24*time.Hour))
	findings, err := store.Inspect(context.Background())
	fmt.Println(errors.Is(err, hookonce.ErrSchemaMissing))
	for _, f := range findings {
		slog.Warn(f.String())
		if f.Fault {
			log.Fatal("the table doubles work")
		}
	}
	// Output: true
}

// A finding in one line.
func ExampleFinding_String() {
	fmt.Println(dynamostore.Finding{Table: "hookonce", Setting: "Replicas", Value: "eu-west-1, us-east-1", Advice: "two regions that get the same event both do the work."})
	// Output: dynamodb hookonce: Replicas is "eu-west-1, us-east-1": two regions that get the same event both do the work.
}
