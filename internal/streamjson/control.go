package streamjson

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// NewControlRequest makes a request of the given subtype from a payload that
// encodes (by encoding/json) as an object without a subtype, or nil for none.
func NewControlRequest(requestID, subtype string, payload any) (*ControlRequest, error) {
	req := &ControlRequest{RequestID: requestID, Subtype: subtype}
	if payload == nil {
		return req, nil
	}
	members, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encoding control request %s: %w", subtype, err)
	}
	members = bytes.TrimSpace(members)
	if len(members) < 2 || members[0] != '{' {
		return nil, fmt.Errorf("encoding control request %s: payload %T is not an object", subtype, payload)
	}
	out := AppendString([]byte(`{"subtype":`), subtype)
	if rest := bytes.TrimSpace(members[1:]); rest[0] != '}' {
		out = append(out, ',')
	}
	req.Request = append(out, members[1:]...)
	return req, nil
}

// Success answers a request; payload is encoded by encoding/json, nil is null.
func Success(requestID string, payload any) (*ControlResponse, error) {
	resp := &ControlResponse{Subtype: ResponseSuccess, RequestID: requestID}
	if payload == nil {
		return resp, nil
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encoding response to %s: %w", requestID, err)
	}
	resp.Response = raw
	return resp, nil
}

// Failure answers a request with an error text.
func Failure(requestID, text string) *ControlResponse {
	return &ControlResponse{Subtype: ResponseError, RequestID: requestID, Error: text}
}
