package scripted

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// Format is the API that a request came in.
type Format string

// Formats.
const (
	FormatGemini    Format = "gemini"
	FormatOpenAI    Format = "openai"
	FormatAnthropic Format = "anthropic"
)

// usualStatus is the HTTP status that an API gives for a kind of error; 0 is
// for kinds that are no answers.
func usualStatus(kind model.ErrorKind, f Format) int {
	switch kind {
	case model.ErrAuth:
		return http.StatusUnauthorized
	case model.ErrRateLimit, model.ErrQuota:
		return http.StatusTooManyRequests
	case model.ErrOverloaded:
		if f == FormatAnthropic {
			return 529
		}
		return http.StatusServiceUnavailable
	case model.ErrServer:
		return http.StatusInternalServerError
	case model.ErrBadRequest, model.ErrContext, model.ErrBlocked, model.ErrConfigured, model.ErrMalformedUse:
		return http.StatusBadRequest
	case model.ErrNotFound:
		return http.StatusNotFound
	}
	return 0
}

// httpStatus is the status to send, or 0 for an error that is not an answer.
func (e *errorSpec) httpStatus(f Format) int {
	if e.status == 0 {
		return usualStatus(e.kind, f)
	}
	return e.status
}

// kindFor is the error's kind if the script says it, else what the status says.
func (e *errorSpec) kindFor(status int) model.ErrorKind {
	switch {
	case e.kind != "":
		return e.kind
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return model.ErrAuth
	case status == http.StatusNotFound:
		return model.ErrNotFound
	case status == http.StatusTooManyRequests:
		return model.ErrRateLimit
	case status == http.StatusServiceUnavailable || status == 529:
		return model.ErrOverloaded
	case status >= 500:
		return model.ErrServer
	}
	return model.ErrBadRequest
}

// response is the error as an API would answer it.
func (e *errorSpec) response(f Format, modelName string, now time.Time) (status int, h http.Header, body []byte) {
	status = e.httpStatus(f)
	h = http.Header{}
	h.Set("Content-Type", "application/json; charset=utf-8")
	e.setRetryAfter(h, now)
	if e.requestID != "" {
		h.Set(requestIDHeader(f), e.requestID)
	}
	for _, kv := range e.headers {
		h.Set(kv[0], kv[1])
	}
	if e.body != nil {
		if e.headers == nil || h.Get("Content-Type") == "application/json; charset=utf-8" {
			h.Set("Content-Type", e.bodyType)
		}
		return status, h, e.body
	}
	v := vendorError{status: status, kind: e.kindFor(status), message: e.message, wait: e.wait(), model: modelName, requestID: e.requestID}
	return status, h, v.body(f)
}

func (e *errorSpec) wait() time.Duration { return max(e.retryAfter, e.retryDate) }

func (e *errorSpec) setRetryAfter(h http.Header, now time.Time) {
	switch {
	case e.retryText != "":
		h.Set("Retry-After", e.retryText)
	case e.retryDate > 0:
		h.Set("Date", now.UTC().Format(http.TimeFormat))
		h.Set("Retry-After", now.Add(e.retryDate).UTC().Format(http.TimeFormat))
	case e.retryAfter > 0:
		h.Set("Retry-After", strconv.FormatFloat(math.Ceil(e.retryAfter.Seconds()), 'f', -1, 64))
	}
}

func requestIDHeader(f Format) string {
	if f == FormatAnthropic {
		return "Request-Id"
	}
	return "X-Request-Id"
}

// inProcess is the typed error that an adapter would make of it: the script's
// word, where it has one, else what model.HTTPError says of the same answer.
func (e *errorSpec) inProcess(name, modelName string) *model.Error {
	status, h, body := e.response(FormatOpenAI, modelName, time.Now())
	err := model.HTTPError(name, &http.Response{StatusCode: max(status, 300), Header: h}, body)
	err.Status = e.status
	if e.noStatus {
		err.Status = status
	}
	if e.kind != "" {
		err.Kind = e.kind
	}
	if e.message != "" {
		err.Message = e.message
	}
	if e.retryAfter > 0 {
		err.RetryAfter = e.retryAfter
	}
	if e.provider != "" {
		err.Provider = e.provider
	}
	err.RequestID = e.requestID
	return err
}

// vendorError is an error in the words of an API.
type vendorError struct {
	status    int
	kind      model.ErrorKind
	message   string // "": the API's usual one
	code      string // OpenAI: "" is the kind's usual one
	param     string // OpenAI
	reason    string // Gemini: ErrorInfo
	wait      time.Duration
	model     string
	requestID string
}

// invalid is an answer to a request that the API would refuse.
func invalid(format string, args ...any) *vendorError {
	return &vendorError{status: http.StatusBadRequest, kind: model.ErrBadRequest, message: fmt.Sprintf(format, args...)}
}

func (v *vendorError) body(f Format) []byte {
	var doc any
	switch f {
	case FormatGemini:
		doc = v.gemini()
	case FormatAnthropic:
		doc = v.anthropic()
	default:
		doc = v.openAI()
	}
	b, err := marshal(doc)
	if err != nil { // strings and numbers always can be
		return []byte(`{"error":{"message":"internal"}}`)
	}
	return b
}

func (v *vendorError) said(usual string) string {
	if v.message != "" {
		return v.message
	}
	return usual
}

type geminiError struct {
	Error geminiErrorBody `json:"error"`
}

type geminiErrorBody struct {
	Code    int               `json:"code"`
	Message string            `json:"message"`
	Status  string            `json:"status"`
	Details []json.RawMessage `json:"details,omitempty"`
}

func (v *vendorError) gemini() geminiError {
	e := geminiErrorBody{Code: v.status, Status: geminiStatus(v.status)}
	detail := func(format string, args ...any) {
		e.Details = append(e.Details, json.RawMessage(fmt.Sprintf(format, args...)))
	}
	switch v.kind {
	case model.ErrQuota:
		e.Message = v.said("You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.")
		detail(`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"250"}]}`)
	case model.ErrRateLimit:
		e.Message = v.said("Resource has been exhausted (e.g. check quota).")
		detail(`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel","quotaValue":"10"}]}`)
	case model.ErrContext:
		e.Message = v.said("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")
	case model.ErrAuth:
		e.Message = v.said("Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.")
	case model.ErrNotFound:
		e.Message = v.said(fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", v.model))
	case model.ErrOverloaded:
		e.Message = v.said("The model is overloaded. Please try again later.")
	case model.ErrServer:
		e.Message = v.said("An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	default:
		e.Message = v.said("Request contains an invalid argument.")
	}
	if v.reason != "" {
		detail(`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q,"domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}`, v.reason)
	}
	if v.wait > 0 {
		detail(`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ss"}`, strconv.FormatFloat(v.wait.Seconds(), 'f', -1, 64))
	}
	return geminiError{Error: e}
}

func geminiStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable, 529:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

type openAIErrorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (v *vendorError) openAI() openAIError {
	e := openAIErrorBody{Type: "invalid_request_error"}
	code := v.code
	usual := func(c string) {
		if code == "" {
			code = c
		}
	}
	switch v.kind {
	case model.ErrQuota:
		e.Message, e.Type = v.said("You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."), "insufficient_quota"
		usual("insufficient_quota")
	case model.ErrRateLimit:
		e.Message, e.Type = v.said(fmt.Sprintf("Rate limit reached for %s in organization org-scripted on requests per min (RPM): Limit 3, Used 3, Requested 1.", v.model)), "requests"
		usual("rate_limit_exceeded")
	case model.ErrContext:
		e.Message = v.said("This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens. Please reduce the length of the messages.")
		usual("context_length_exceeded")
	case model.ErrAuth:
		e.Message = v.said("Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.")
		usual("invalid_api_key")
	case model.ErrNotFound:
		e.Message = v.said(fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", v.model))
		usual("model_not_found")
	case model.ErrBlocked:
		e.Message = v.said("The response was filtered due to the prompt triggering the content management policy.")
		usual("content_filter")
	case model.ErrOverloaded:
		e.Message, e.Type = v.said("The engine is currently overloaded, please try again later."), "server_error"
	case model.ErrServer:
		e.Message, e.Type = v.said("The server had an error while processing your request. Sorry about that!"), "server_error"
	default:
		e.Message = v.said("We could not parse the JSON body of your request.")
	}
	if code != "" {
		e.Code = &code
	}
	if v.param != "" {
		e.Param = &v.param
	}
	return openAIError{Error: e}
}

type anthropicError struct {
	Type      string             `json:"type"`
	Error     anthropicErrorBody `json:"error"`
	RequestID string             `json:"request_id,omitempty"`
}

type anthropicErrorBody struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (v *vendorError) anthropic() anthropicError {
	e := anthropicErrorBody{Type: anthropicType(v.status)}
	switch v.kind {
	case model.ErrQuota:
		e.Type, e.Message = "invalid_request_error", v.said("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")
		if v.status == http.StatusTooManyRequests {
			e.Type = "rate_limit_error"
		}
	case model.ErrRateLimit:
		e.Message = v.said("This request would exceed your organization's rate limit of 50 requests per minute.")
	case model.ErrContext:
		e.Message = v.said("prompt is too long: 210000 tokens > 200000 maximum")
	case model.ErrAuth:
		e.Message = v.said("invalid x-api-key")
	case model.ErrNotFound:
		e.Message = v.said("model: " + v.model)
	case model.ErrOverloaded:
		e.Message = v.said("Overloaded")
	case model.ErrServer:
		e.Message = v.said("Internal server error")
	case model.ErrBlocked:
		e.Message = v.said("Output blocked by content filtering policy")
	default:
		e.Message = v.said("Invalid request")
	}
	id := v.requestID
	if id == "" {
		id = "req_scripted"
	}
	return anthropicError{Type: "error", Error: e, RequestID: id}
}

func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
