package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// sources are stdin as a pipe, and as what can't be polled.
func sources(t *testing.T) map[string]func() (stdin, *os.File) {
	open := func(wrap func(*os.File) io.Reader) func() (stdin, *os.File) {
		return func() (stdin, *os.File) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close(); r.Close() })
			in := newStdin(wrap(r))
			t.Cleanup(in.release)
			return in, w
		}
	}
	return map[string]func() (stdin, *os.File){
		"pipe":   open(func(f *os.File) io.Reader { return f }),
		"reader": open(func(f *os.File) io.Reader { return struct{ io.Reader }{f} }),
	}
}

func TestStdinIsReadToItsEnd(t *testing.T) {
	for name, open := range sources(t) {
		t.Run(name, func(t *testing.T) {
			in, w := open()
			text := strings.Repeat("a line\n", 20_000) // more than a pipe holds
			go func() {                                // ends when all is read
				_, _ = io.WriteString(w, text)
				w.Close()
			}()
			got, err := io.ReadAll(in)
			if err != nil || string(got) != text {
				t.Errorf("read %d bytes of %d: %v", len(got), len(text), err)
			}
			in.Unblock() // harmless after the end
		})
	}
}

func TestUnblockEndsAReadOfStdin(t *testing.T) {
	for name, open := range sources(t) {
		t.Run(name, func(t *testing.T) {
			in, w := open()
			if _, err := io.WriteString(w, "x"); err != nil {
				t.Fatal(err)
			}
			if n, err := in.Read(make([]byte, 8)); n != 1 || err != nil {
				t.Fatalf("Read: %d, %v", n, err)
			}
			ended := make(chan error)
			go func() { // ends by Unblock
				_, err := in.Read(make([]byte, 8))
				ended <- err
			}()
			in.Unblock()
			in.Unblock()
			if err := <-ended; !errors.Is(err, io.EOF) {
				t.Errorf("the pending Read: %v", err)
			}
			if _, err := in.Read(make([]byte, 8)); !errors.Is(err, io.EOF) {
				t.Errorf("a later Read: %v", err)
			}
		})
	}
}

func TestStdinThatIsClosedIsTold(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	for name, src := range map[string]io.Reader{"pipe": r, "reader": struct{ io.Reader }{r}} {
		in := newStdin(src)
		defer in.release()
		r.Close()
		if _, err := in.Read(make([]byte, 8)); !errors.Is(err, errNoStdin) {
			t.Errorf("%s: Read: %v", name, err)
		}
	}
}
