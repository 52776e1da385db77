package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// requestLog reads the model server's log: a line per request, written when
// its answer ends.
type requestLog struct {
	path string
	seen int // bytes that were read
}

// request is one request to the model server.
type request struct {
	Time   time.Time `json:"time"` // of arrival
	Millis float64   `json:"ms"`   // until the answer had been sent
	Bytes  int       `json:"bytes"`
	Status int       `json:"status"`
}

func (r request) end() time.Time {
	return r.Time.Add(time.Duration(r.Millis * float64(time.Millisecond)))
}

// next waits for the n requests after those that were seen.
func (l *requestLog) next(n int) ([]request, error) {
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		list, read, err := l.read()
		if err != nil || len(list) >= n {
			l.seen += read
			return list, err
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return nil, fmt.Errorf("the server's log has %d requests of %d", len(list), n)
		}
	}
}

// skip passes over what is there.
func (l *requestLog) skip() error {
	_, read, err := l.read()
	l.seen += read
	return err
}

func (l *requestLog) read() (list []request, read int, err error) {
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	data = data[l.seen:]
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(data) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, 0, fmt.Errorf("the server's log: %w", err)
		}
		if r.Status != 200 {
			return nil, 0, fmt.Errorf("the server refused a request: %s", line)
		}
		list = append(list, r)
	}
	return list, len(data), nil
}
