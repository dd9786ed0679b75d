package dynamostore

import (
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// Limits of the service (Amazon DynamoDB Developer Guide, "Quotas").
const (
	// MaxItem is how large an item may be, in bytes, names of attributes included.
	MaxItem = 400 << 10
	// MaxItems is how many items one transaction may be about, the claims and guards among them.
	MaxItems = 100
	// MaxTransaction is how large the items of one transaction may be together, in bytes.
	MaxTransaction = 4 << 20
	// MaxResponse is how large a response may be that is kept, header and body together, in bytes: what an item has room
	// for beside the claim. Give it to [hookonce.WithMaxResponse].
	MaxResponse = 384 << 10
)

// fits returns an error if the response is too large to be kept.
func fits(r hookonce.Response) error {
	if n := len(header.Encode(r.Header)) + len(r.Body); n > MaxResponse {
		return fmt.Errorf("an item of DynamoDB has room for an answer of %d bytes, and this one has %d: %w", MaxResponse, n, hookonce.ErrResponseTooLarge)
	}
	return nil
}

// sizeOf is how large an item is as the service counts it, or somewhat less: numbers are counted as their digits.
func sizeOf(i map[string]types.AttributeValue) (n int) {
	for name, v := range i {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v types.AttributeValue) int {
	const container, element = 3, 1
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (utf8.RuneCountInString(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberSS:
		return sum(v.Value, func(s string) int { return len(s) })
	case *types.AttributeValueMemberNS:
		return sum(v.Value, func(s string) int { return (len(s)+1)/2 + 1 })
	case *types.AttributeValueMemberBS:
		return sum(v.Value, func(b []byte) int { return len(b) })
	case *types.AttributeValueMemberL:
		return container + sum(v.Value, func(v types.AttributeValue) int { return element + sizeOfValue(v) })
	case *types.AttributeValueMemberM:
		return container + len(v.Value)*element + sizeOf(v.Value)
	}
	return 1 // BOOL, NULL
}

func sum[V any](all []V, size func(V) int) (n int) {
	for _, v := range all {
		n += size(v)
	}
	return n
}
