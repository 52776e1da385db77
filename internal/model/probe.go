package model

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// probeLimit is for all local servers together.
const probeLimit = 300 * time.Millisecond

// localServer is an OpenAI-compatible server on its usual port.
type localServer struct{ vendor, port string }

var localServers = [...]localServer{{"ollama", "11434"}, {"llamacpp", "8080"}, {"vllm", "8000"}, {"lmstudio", "1234"}}

func (s localServer) url() string { return "http://127.0.0.1:" + s.port + "/v1" }

// ProbeLocal looks for a model server on this machine, on the usual ports of
// Ollama, llama.cpp, vLLM and LM Studio, all at once, and returns the first of
// them, in that order, that lists a model, with the first model it lists. It
// takes 300 ms at most. client must reach the loopback interface without a
// proxy; nil is http.DefaultClient. The error, which wraps ErrNoCredentials,
// says how to go on; if ctx ended it is ctx's cause.
func ProbeLocal(ctx context.Context, client *http.Client) (Target, error) {
	if client == nil {
		client = http.DefaultClient
	}
	direct := withoutRedirects(client)
	probing, cancel := context.WithTimeout(ctx, probeLimit)
	var models [len(localServers)]chan string
	var wg sync.WaitGroup
	for i, s := range localServers {
		models[i] = make(chan string, 1)
		wg.Go(func() { models[i] <- firstModel(probing, direct, s.url()) }) // ends with probing
	}
	defer wg.Wait()
	defer cancel()
	for i, s := range localServers {
		if m := <-models[i]; m != "" {
			return Target{Provider: "openai", Vendor: s.vendor, Model: m, BaseURL: s.url()}, nil
		}
	}
	if ctx.Err() != nil {
		return Target{}, context.Cause(ctx)
	}
	return Target{}, noCredentials("", "%s", howToGoOn)
}

// firstModel returns the first chat model that the server at base lists, or "".
func firstModel(ctx context.Context, client *http.Client, base string) string {
	ids, err := listModels(ctx, client, base)
	if err != nil {
		return "" // whatever it is, it is no model server
	}
	for _, id := range ids {
		if !strings.Contains(strings.ToLower(id), "embed") {
			return id
		}
	}
	return ""
}

func listModels(ctx context.Context, client *http.Client, base string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, err
	}
	list, err := fetchModels(client, req)
	return list.ids, err
}
