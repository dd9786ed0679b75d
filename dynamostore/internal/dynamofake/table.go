package dynamofake

import (
	"io"
	"net/http"
)

// maxBody is how large a request may be.
const maxBody = 16 << 20

func readAll(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, maxBody)) }

// table is a table whose key is one attribute.
type table struct {
	description description
	key         string
	items       map[string]values // by the value of the key
	ttl         timeToLive
	protected   bool
}

type (
	attributeDefinition struct{ AttributeName, AttributeType string }
	keyElement          struct{ AttributeName, KeyType string }
	throughput          struct{ ReadCapacityUnits, WriteCapacityUnits int64 }
	billing             struct{ BillingMode string }

	// description is what the service says of a table.
	description struct {
		TableName                 string
		TableStatus               string
		AttributeDefinitions      []attributeDefinition
		KeySchema                 []keyElement
		BillingModeSummary        *billing `json:",omitempty"`
		DeletionProtectionEnabled bool
		Replicas                  []Replica `json:",omitempty"`
		MultiRegionConsistency    string    `json:",omitempty"`
	}

	// Replica is a copy of a table in another region.
	Replica struct{ RegionName string }

	timeToLive struct {
		AttributeName    string `json:",omitempty"`
		TimeToLiveStatus string
	}

	named struct{ TableName string }
)

type createTable struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	BillingMode               string
	ProvisionedThroughput     *throughput
	DeletionProtectionEnabled bool
}

func (s *Server) createTable(in createTable) (any, *failure) {
	if s.tables[in.TableName] != nil {
		return nil, fail("ResourceInUseException", "Table already exists: %s", in.TableName)
	}
	if len(in.KeySchema) != 1 {
		return nil, invalid("this stand-in has tables with one key attribute only")
	}
	t := &table{
		key: in.KeySchema[0].AttributeName, items: map[string]values{}, protected: in.DeletionProtectionEnabled,
		ttl: timeToLive{TimeToLiveStatus: "DISABLED"},
		description: description{
			TableName: in.TableName, TableStatus: "ACTIVE", AttributeDefinitions: in.AttributeDefinitions, KeySchema: in.KeySchema,
			DeletionProtectionEnabled: in.DeletionProtectionEnabled,
		},
	}
	if in.BillingMode == "PAY_PER_REQUEST" {
		t.description.BillingModeSummary = &billing{in.BillingMode}
	}
	s.tables[in.TableName] = t
	return map[string]any{"TableDescription": t.description}, nil
}

// Replicate says that a table has copies in other regions, and how consistent they are (EVENTUAL or STRONG).
func (s *Server) Replicate(name, consistency string, regions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.tables[name].description
	d.MultiRegionConsistency, d.Replicas = consistency, nil
	for _, r := range regions {
		d.Replicas = append(d.Replicas, Replica{r})
	}
}

func (s *Server) find(name string) (*table, *failure) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fail("ResourceNotFoundException", "Requested resource not found")
}

func (s *Server) deleteTable(in named) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	if t.protected {
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion")
	}
	delete(s.tables, in.TableName)
	return map[string]any{"TableDescription": t.description}, nil
}

func (s *Server) describeTable(in named) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": t.description}, nil
}

type updateTable struct {
	TableName                 string
	DeletionProtectionEnabled bool
}

func (s *Server) updateTable(in updateTable) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	t.protected, t.description.DeletionProtectionEnabled = in.DeletionProtectionEnabled, in.DeletionProtectionEnabled
	return map[string]any{"TableDescription": t.description}, nil
}

type updateTimeToLive struct {
	TableName               string
	TimeToLiveSpecification struct {
		AttributeName string
		Enabled       bool
	}
}

func (s *Server) updateTimeToLive(in updateTimeToLive) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	if spec.Enabled && t.ttl.AttributeName != "" {
		return nil, invalid("TimeToLive is already enabled")
	}
	t.ttl = timeToLive{TimeToLiveStatus: "DISABLED"}
	if spec.Enabled {
		t.ttl = timeToLive{spec.AttributeName, "ENABLED"}
	}
	return map[string]any{"TimeToLiveSpecification": spec}, nil
}

func (s *Server) describeTimeToLive(in named) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"TimeToLiveDescription": t.ttl}, nil
}

func (s *Server) describeBackups(in named) (any, *failure) {
	if _, err := s.find(in.TableName); err != nil {
		return nil, err
	}
	off := map[string]any{"PointInTimeRecoveryStatus": "DISABLED"}
	return map[string]any{"ContinuousBackupsDescription": map[string]any{
		"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": off,
	}}, nil
}
