package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxList bounds a list of models that is read, in bytes.
const maxList = 8 << 20

// ErrNoList says that a provider has no list of models that can be relied on.
var ErrNoList = errors.New("the provider lists no models")

// ListModels asks the provider of a target for the ids of all its models. An
// error is ErrNoList, or says why the list can't be had; either way it says
// nothing about the target. header replaces what would be sent under the same
// names. A nil client is http.DefaultClient.
func ListModels(ctx context.Context, client *http.Client, t Target, header http.Header) ([]string, error) {
	req, err := listRequest(ctx, t)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		req.Header[http.CanonicalHeaderKey(key)] = values
	}
	list, err := fetchModels(withoutRedirects(client), req)
	switch {
	case err != nil:
		return nil, err
	case list.more || len(list.ids) == 0:
		return nil, ErrNoList
	}
	return list.ids, nil
}

// listRequest is the request for a provider's list of models.
func listRequest(ctx context.Context, t Target) (*http.Request, error) {
	base, path, query := t.BaseURL, "", ""
	header := http.Header{}
	set := func(name, prefix, value string) {
		if value != "" {
			header.Set(name, prefix+value)
		}
	}
	switch {
	case t.Provider == "openai":
		base, path = cmp.Or(base, "https://api.openai.com/v1"), "/models"
		set("Authorization", "Bearer ", t.Key)
	case t.Provider == "anthropic":
		base, path, query = cmp.Or(base, "https://api.anthropic.com"), "/v1/models", "limit=1000"
		header.Set("Anthropic-Version", "2023-06-01")
		if set("X-Api-Key", "", t.Key); t.Key == "" {
			set("Authorization", "Bearer ", t.AuthToken)
		}
	case t.Provider == "gemini" && !t.Vertex:
		base, path, query = cmp.Or(base, "https://generativelanguage.googleapis.com"), "/v1beta/models", "pageSize=1000"
		set("X-Goog-Api-Key", "", t.Key)
	default:
		return nil, ErrNoList
	}
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimRight(u.Path, "/")
	switch t.Provider {
	case "openai":
		u.Path = strings.TrimSuffix(u.Path, "/chat/completions")
	case "anthropic":
		u.Path = strings.TrimSuffix(u.Path, "/v1")
	}
	u.Path, u.RawPath = u.Path+path, ""
	if query != "" {
		u.RawQuery = query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err == nil {
		req.Header = header
	}
	return req, err
}

// modelList is a list of models; more: it has more of them than are here.
type modelList struct {
	ids  []string
	more bool
}

// fetchModels reads a list in the form of any of the APIs.
func fetchModels(client *http.Client, req *http.Request) (modelList, error) {
	resp, err := client.Do(req)
	if err != nil {
		return modelList{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return modelList{}, errors.New(resp.Status)
	}
	var body struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		HasMore bool `json:"has_more"`
		Models  []struct {
			Name string `json:"name"`
		} `json:"models"`
		NextPage string `json:"nextPageToken"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&body); err != nil {
		return modelList{}, err
	}
	list := modelList{more: body.HasMore || body.NextPage != ""}
	for _, m := range body.Data {
		if m.ID != "" {
			list.ids = append(list.ids, m.ID)
		}
	}
	for _, m := range body.Models {
		if m.Name != "" && len(body.Data) == 0 {
			list.ids = append(list.ids, strings.TrimPrefix(m.Name, "models/"))
		}
	}
	return list, nil
}

// withoutRedirects returns a copy of client that follows none: keys go where
// they were meant to.
func withoutRedirects(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &direct
}

// Listed reports whether a list of models has the one that id means: the same,
// in any case, or one of which id is the name without a tag (qwen3 for
// qwen3:latest) or date (claude-sonnet-4-5), or a variant (a/b:free). An entry
// that ends in * stands for all that begin so.
func Listed(list []string, id string) bool {
	id = strings.TrimPrefix(strings.ToLower(id), "models/")
	plain, _, _ := strings.Cut(id, ":")
	return slices.ContainsFunc(list, func(one string) bool {
		one = strings.ToLower(one)
		if start, any := strings.CutSuffix(one, "*"); any {
			return strings.HasPrefix(id, start)
		}
		rest, longer := strings.CutPrefix(one, id)
		return longer && (rest == "" || rest[0] == ':' || rest[0] == '-' && isVersion(rest)) || one == plain && strings.Contains(plain, "/")
	})
}

// maxNear is how many names NearModels gives.
const maxNear = 5

// NearModels returns the few of a list of models that are most like id, the
// nearest first. Of a short list it returns all.
func NearModels(list []string, id string) []string {
	type scored struct {
		name string
		at   int
	}
	id = strings.ToLower(id)
	id = id[:min(len(id), maxCompared)]
	near := make([]scored, 0, len(list))
	for _, name := range list {
		if len(name) > maxCompared {
			continue
		}
		if d := editDistance(id, strings.ToLower(name)); len(list) <= maxNear || d <= max(len(id), len(name))/2 {
			near = append(near, scored{name, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int { return cmp.Or(a.at-b.at, strings.Compare(a.name, b.name)) })
	var out []string
	for _, n := range near[:min(len(near), maxNear)] {
		out = append(out, n.name)
	}
	return out
}

// maxCompared bounds names that are compared, in bytes: anything may come.
const maxCompared = 100

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
