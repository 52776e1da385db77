package streamjson

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// ControlRequest is a line of type "control_request", in either direction.
// Request is the whole request object with its subtype; when it is nil, Append
// writes one that has only Subtype. A request that was read always has both
// ids and an object.
type ControlRequest struct {
	RequestID string
	Subtype   string
	Request   json.RawMessage
}

// Subtypes of a ControlResponse.
const (
	ResponseSuccess = "success"
	ResponseError   = "error"
)

// ControlResponse is a line of type "control_response", in either direction.
// Response belongs to ResponseSuccess (nil is null on the wire), Error to
// ResponseError. Extra are further members beside them, in the inner object.
type ControlResponse struct {
	Subtype   string
	RequestID string
	Response  json.RawMessage
	Error     string
	Extra     jsontext.Value
}

// ControlCancel is a line of type "control_cancel_request": the sender of the
// request with this id no longer wants it answered. A line whose id is null or
// "" is read as one with an empty RequestID, which some hosts mean as all of
// their requests.
type ControlCancel struct {
	RequestID string `json:"request_id"`
}

// Failure answers a request with an error text.
func Failure(requestID, text string) *ControlResponse {
	return &ControlResponse{Subtype: ResponseError, RequestID: requestID, Error: text}
}
