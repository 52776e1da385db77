// Command calls is the floor of a turn with many tool calls: it keeps the
// history of an OpenAI chat, sends it whole each time, and answers each call of
// read_file with the file's text until no call comes. It has no policy, limits,
// transcript or output.
//
//	calls URL PROMPT
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	Index    int      `json:"index"`
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: calls URL PROMPT")
	}
	history := []message{{Role: "user", Content: args[1]}}
	for {
		calls, err := ask(args[0], history)
		if err != nil || len(calls) == 0 {
			return err
		}
		history = append(history, message{Role: "assistant", ToolCalls: calls})
		for _, c := range calls {
			text, err := read(c.Function.Arguments)
			if err != nil {
				return err
			}
			history = append(history, message{Role: "tool", Content: text, ToolCallID: c.ID})
		}
	}
}

func read(arguments string) (string, error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", err
	}
	text, err := os.ReadFile(in.Path)
	return string(text), err
}

func ask(url string, history []message) ([]call, error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-test", "stream": true, "messages": history})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest("POST", url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer test-key")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	return collect(bufio.NewScanner(resp.Body))
}

// collect puts the calls of an answer together.
func collect(lines *bufio.Scanner) ([]call, error) {
	var calls []call
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					ToolCalls []call `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, err
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		for _, c := range chunk.Choices[0].Delta.ToolCalls {
			if c.ID != "" {
				calls = append(calls, c)
				continue
			}
			calls[c.Index].Function.Arguments += c.Function.Arguments
		}
	}
	return calls, lines.Err()
}
