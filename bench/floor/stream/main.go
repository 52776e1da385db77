// Command stream is the floor of one streamed answer: it asks a model in one
// API format, decodes each server-sent event with encoding/json and writes a
// line of JSON for each piece of text, with a write(2) each. It is the smallest
// straightforward program that does that; it has no tools, history or checks.
//
//	stream FORMAT URL PROMPT [drain]
//	stream FORMAT URL --stdin
//
// With drain it only reads the answer, which shows what the server costs. With
// --stdin it is the floor of a program that a host drives over pipes.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// format is an API format: its request, and the text of an event.
type format struct {
	path   string
	header [2]string
	body   func(prompt string) any
	text   func(data []byte) (string, error)
}

var formats = map[string]format{
	"openai": {"/v1/chat/completions", [2]string{"Authorization", "Bearer test-key"}, func(prompt string) any {
		return map[string]any{"model": "gpt-test", "stream": true, "messages": []message{{"user", prompt}}}
	}, openaiText},
	"anthropic": {"/v1/messages", [2]string{"X-Api-Key", "test-key"}, func(prompt string) any {
		return map[string]any{"model": "claude-test", "stream": true, "max_tokens": 1000, "messages": []message{{"user", prompt}}}
	}, anthropicText},
	"gemini": {"/v1beta/models/gemini-test:streamGenerateContent?alt=sse", [2]string{"X-Goog-Api-Key", "test-key"}, func(prompt string) any {
		return map[string]any{"contents": []map[string]any{{"role": "user", "parts": []map[string]string{{"text": prompt}}}}}
	}, geminiText},
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func openaiText(data []byte) (string, error) {
	var chunk struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil || len(chunk.Choices) == 0 {
		return "", err
	}
	return chunk.Choices[0].Delta.Content, nil
}

func anthropicText(data []byte) (string, error) {
	var event struct {
		Delta struct {
			Text string `json:"text"`
		} `json:"delta"`
	}
	err := json.Unmarshal(data, &event)
	return event.Delta.Text, err
}

func geminiText(data []byte) (string, error) {
	var chunk struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil || len(chunk.Candidates) == 0 || len(chunk.Candidates[0].Content.Parts) == 0 {
		return "", err
	}
	return chunk.Candidates[0].Content.Parts[0].Text, nil
}

// line is what comes out for each piece of text.
type line struct {
	Type      string  `json:"type"`
	Event     event   `json:"event"`
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_tool_use_id"`
	UUID      string  `json:"uuid"`
}

type event struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta delta  `json:"delta"`
}

type delta struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 || len(args) > 4 {
		return fmt.Errorf("usage: stream FORMAT URL PROMPT|--stdin [drain]")
	}
	if args[2] == "--stdin" {
		return serve(os.Stdin, &lockedWriter{w: os.Stdout}, formats[args[0]], args[1])
	}
	resp, err := ask(formats[args[0]], args[1], args[2])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if len(args) == 4 {
		_, err := io.Copy(io.Discard, resp.Body)
		return err
	}
	return copyEvents(os.Stdout, resp.Body, formats[args[0]].text)
}

func ask(f format, url, prompt string) (*http.Response, error) {
	body, err := json.Marshal(f.body(prompt))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest("POST", url+f.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set(f.header[0], f.header[1])
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return resp, err
}

func copyEvents(w io.Writer, r io.Reader, text func([]byte) (string, error)) error {
	out := line{Type: "stream_event", SessionID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", UUID: "6ba7b811-9dad-41d1-80b4-00c04fd430c8"}
	out.Event = event{Type: "content_block_delta", Delta: delta{Type: "text_delta"}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		piece, err := text(data)
		if err != nil {
			return err
		}
		if piece == "" {
			continue
		}
		out.Event.Delta.Text = piece
		raw, err := json.Marshal(&out)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}
