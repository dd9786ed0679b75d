package tracing

import "go.opentelemetry.io/otel/attribute"

// The names that spans and their attributes have. Those of HTTP are stable. Those of messaging are in development
// (https://opentelemetry.io/docs/specs/semconv/messaging/): when they change, they change here. They are written out because
// the package of all conventions is a hundred times as large as what is needed of it.
const (
	scope = "github.com/hookonce/hookonce" // the instrumentation

	httpMethod   = attribute.Key("http.request.method")
	httpStatus   = attribute.Key("http.response.status_code")
	httpRoute    = attribute.Key("http.route")
	httpBodySize = attribute.Key("http.request.body.size")
	urlPath      = attribute.Key("url.path")
	urlScheme    = attribute.Key("url.scheme")
	serverHost   = attribute.Key("server.address")
	serverPort   = attribute.Key("server.port")
	errorType    = attribute.Key("error.type")

	messagingSystem      = attribute.Key("messaging.system")
	messagingOperation   = attribute.Key("messaging.operation.name")
	messagingType        = attribute.Key("messaging.operation.type")
	messagingDestination = attribute.Key("messaging.destination.name")
	messagingID          = attribute.Key("messaging.message.id")
	messagingBodySize    = attribute.Key("messaging.message.body.size")

	// What only hookonce knows.
	ownSource      = attribute.Key("hookonce.source")
	ownDestination = attribute.Key("hookonce.destination")
	ownType        = attribute.Key("hookonce.event.type")
	ownStatus      = attribute.Key("hookonce.status")  // what became of an event: see journal.Status
	ownOutcome     = attribute.Key("hookonce.outcome") // what became of an attempt: see journal.State
	ownAttempt     = attribute.Key("hookonce.attempt")
	ownTries       = attribute.Key("hookonce.tries")
	ownVerified    = attribute.Key("hookonce.verified")

	serviceName    = attribute.Key("service.name")
	serviceVersion = attribute.Key("service.version")
)

// The values of messaging attributes, and what the names of spans begin with.
const (
	system   = "hookonce"
	accept   = "accept"
	deliver  = "deliver"
	typeSend = "send"
	typeWork = "process"
	route    = "/in/{source}"
	traceID  = "trace_id" // the label of an exemplar, which Grafana looks for
)
