package main

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// lockedWriter lets answers and pieces of text take turns.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// hostLine is a line of the host: a request to answer, or a user's text.
type hostLine struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Message struct {
		Content string `json:"content"`
	} `json:"message"`
}

type answer struct {
	Type     string   `json:"type"`
	Response response `json:"response"`
}

type response struct {
	Subtype   string            `json:"subtype"`
	RequestID string            `json:"request_id"`
	Response  map[string]string `json:"response"`
}

type result struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
}

// serve reads lines until they end: it answers each request by one line, by the
// goroutine that reads, and streams an answer to each user's text beside that.
func serve(in io.Reader, out io.Writer, f format, url string) error {
	lines := bufio.NewScanner(in)
	var turn sync.WaitGroup
	failed := make(chan error, 1)
	for lines.Scan() {
		var l hostLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		if l.Type == "user" {
			turn.Wait()
			turn.Go(func() {
				if err := stream(out, f, url, l.Message.Content); err != nil {
					failed <- err
				}
			})
			continue
		}
		a := answer{"control_response", response{"success", l.RequestID, map[string]string{"subtype": l.Request.Subtype}}}
		if err := writeLine(out, a); err != nil {
			return err
		}
	}
	turn.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return lines.Err()
	}
}

// stream is one turn.
func stream(out io.Writer, f format, url, prompt string) error {
	resp, err := ask(f, url, prompt)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := copyEvents(out, resp.Body, f.text); err != nil {
		return err
	}
	return writeLine(out, result{"result", "success"})
}

func writeLine(out io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(raw, '\n'))
	return err
}
