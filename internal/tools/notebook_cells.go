package tools

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// piece is a part of a file's bytes.
type piece struct{ start, end int }

// member is one member of an object, where its value lies.
type notebookMember struct {
	key   string
	value piece
}

// cell is one cell of a notebook.
type notebookCell struct {
	piece
	members  []notebookMember
	id, kind string
}

// notebook is a parsed .ipynb file: what is not changed is taken from data.
type notebook struct {
	data    []byte
	list    piece // of the cells, brackets included
	cells   []notebookCell
	withIDs bool // its format demands ids of cells

	newline string    // "" in a file without line breaks between values
	indents [3]string // of the list, of a cell, of a cell's members
	colon   string
}

// editNotebook carries out an edit on the bytes of a notebook.
func editNotebook(data []byte, in notebookInput) ([]byte, cellPlace, error) {
	nb, err := parseNotebook(data)
	if err != nil {
		return nil, cellPlace{}, err
	}
	i := -1
	if in.CellID != "" {
		if i, err = nb.find(in.CellID); err != nil {
			return nil, cellPlace{}, err
		}
	}
	var next []byte
	var at cellPlace
	switch in.Mode {
	case "insert":
		next, at = nb.insert(i+1, in)
	case "delete":
		c := &nb.cells[i]
		next, at = nb.remove(i), cellPlace{i, c.id, c.kind}
	default:
		next, at = nb.replace(i, in)
	}
	if !json.Valid(trimStart(next)) { // a defect of ours must not become the user's
		return nil, cellPlace{}, errors.New("the result would not be JSON: a defect of this program")
	}
	return next, at, nil
}

// members returns the members of the object that value is.
func membersOf(data []byte, value piece) ([]notebookMember, error) {
	dec := json.NewDecoder(bytes.NewReader(data[value.start:value.end]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var out []notebookMember
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := nextValue(dec, value.start)
		if err != nil {
			return nil, err
		}
		out = append(out, notebookMember{t.(string), v})
	}
	_, err := dec.Token()
	return out, err
}

// nextValue reads one value and says where it lies; base is where dec began.
func nextValue(dec *json.Decoder, base int) (piece, error) {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return piece{}, err
	}
	end := base + int(dec.InputOffset())
	return piece{end - len(raw), end}, nil
}

// trimStart cuts white space and a byte order mark.
func trimStart(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n\ufeff") }

func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{data: data}
	start := len(data) - len(trimStart(data))
	if !json.Valid(data[start:]) {
		return nil, errors.New("it is not a notebook: its content is not JSON")
	}
	top, err := membersOf(data, piece{start, len(data)})
	if err != nil {
		return nil, fmt.Errorf("it is not a notebook: %w", err)
	}
	found := false
	format, minor := 0, 0
	for _, m := range top {
		switch m.key {
		case "cells":
			nb.list, found = m.value, true
		case "nbformat":
			format, _ = strconv.Atoi(string(nb.text(m.value))) // 0 if it isn't a number
		case "nbformat_minor":
			minor, _ = strconv.Atoi(string(nb.text(m.value)))
		}
	}
	if !found {
		return nil, errors.New(`it is not a notebook of format 4: there is no list "cells"`)
	}
	nb.withIDs = format > 4 || format == 4 && minor >= 5
	if err := nb.parseCells(); err != nil {
		return nil, err
	}
	nb.measure()
	return nb, nil
}

func (nb *notebook) text(s piece) []byte { return nb.data[s.start:s.end] }

func (nb *notebook) parseCells() error {
	dec := json.NewDecoder(bytes.NewReader(nb.text(nb.list)))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New(`it is not a notebook: "cells" is not a list`)
	}
	for dec.More() {
		v, err := nextValue(dec, nb.list.start)
		if err != nil {
			return err
		}
		c := notebookCell{piece: v}
		if c.members, err = membersOf(nb.data, v); err != nil {
			return fmt.Errorf("cell-%d: %w", len(nb.cells), err)
		}
		for _, m := range c.members {
			var s string
			if json.Unmarshal(nb.text(m.value), &s) != nil {
				continue
			}
			switch m.key {
			case "id":
				c.id = s
			case "cell_type":
				c.kind = s
			}
		}
		nb.cells = append(nb.cells, c)
	}
	return nil
}

// find returns the cell of a name.
func (nb *notebook) find(name string) (int, error) {
	for i := range nb.cells {
		if nb.cells[i].id == name {
			return i, nil
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "cell-")); err == nil && n >= 0 && n < len(nb.cells) {
		return n, nil
	}
	var known []string
	for i := range nb.cells {
		if i == 20 {
			known = append(known, "...")
			break
		}
		id := nb.cells[i].id
		if id == "" {
			id = fmt.Sprintf("cell-%d", i)
		}
		known = append(known, id)
	}
	return 0, fmt.Errorf("there is no cell %q; it has %d: %s", name, len(nb.cells), strings.Join(known, ", "))
}

// measure finds out how the file is laid out.
func (nb *notebook) measure() {
	nb.colon = ": "
	if len(nb.cells) == 0 || len(nb.cells[0].members) == 0 {
		if bytes.IndexByte(nb.data, '\n') >= 0 {
			nb.newline, nb.indents = "\n", [3]string{" ", "  ", "   "}
		}
		return
	}
	c := &nb.cells[0]
	first := c.members[0]
	key := bytes.LastIndexByte(nb.data[:bytes.LastIndexByte(nb.data[:first.value.start], ':')], '"')
	key = bytes.LastIndexByte(nb.data[:key], '"')
	if nb.data[first.value.start-1] == ':' {
		nb.colon = ":"
	}
	gap := nb.data[c.start+1 : key]
	i := bytes.LastIndexByte(gap, '\n')
	if i < 0 {
		return
	}
	nb.newline = "\n"
	if i > 0 && gap[i-1] == '\r' {
		nb.newline = "\r\n"
	}
	nb.indents[2] = string(gap[i+1:])
	before := nb.data[nb.list.start+1 : c.start]
	nb.indents[1] = string(before[bytes.LastIndexByte(before, '\n')+1:])
	after := nb.data[nb.cells[len(nb.cells)-1].end : nb.list.end-1]
	nb.indents[0] = string(after[bytes.LastIndexByte(after, '\n')+1:])
}

// splice returns the file with a piece replaced.
func (nb *notebook) splice(at piece, text string) []byte {
	return slices.Concat(nb.data[:at.start], []byte(text), nb.data[at.end:])
}

func (nb *notebook) remove(i int) []byte {
	at := nb.cells[i].piece
	switch {
	case i+1 < len(nb.cells):
		at.end = nb.cells[i+1].start
	case i > 0:
		at.start = nb.cells[i-1].end
	default:
		at = piece{nb.list.start + 1, nb.list.end - 1}
	}
	return nb.splice(at, "")
}

func (nb *notebook) insert(i int, in notebookInput) ([]byte, cellPlace) {
	at := cellPlace{index: i, kind: in.Type}
	fields := [][2]string{{"cell_type", jsonString(in.Type)}}
	if in.Type == "code" {
		fields = append(fields, [2]string{"execution_count", "null"})
	}
	if nb.withIDs {
		at.id = newCellID()
		fields = append(fields, [2]string{"id", jsonString(at.id)})
	}
	fields = append(fields, [2]string{"metadata", "{}"})
	if in.Type == "code" {
		fields = append(fields, [2]string{"outputs", "[]"})
	}
	text := nb.cell(append(fields, [2]string{"source", nb.source(*in.Source)}))
	switch {
	case len(nb.cells) == 0:
		return nb.splice(nb.list, "["+nb.newline+nb.indents[1]+text+nb.newline+nb.indents[0]+"]"), at
	case i < len(nb.cells):
		start := nb.cells[i].start
		return nb.splice(piece{start, start}, text+","+nb.newline+nb.indents[1]), at
	}
	end := nb.cells[i-1].end
	return nb.splice(piece{end, end}, ","+nb.newline+nb.indents[1]+text), at
}

// replace gives a cell a new source, and what depends on it.
func (nb *notebook) replace(i int, in notebookInput) ([]byte, cellPlace) {
	c := &nb.cells[i]
	kind := c.kind
	if in.Type != "" {
		kind = in.Type
	}
	set := map[string]string{"cell_type": jsonString(kind), "source": nb.source(*in.Source)}
	if kind == "code" {
		set["execution_count"], set["outputs"] = "null", "[]"
	}
	var fields [][2]string
	for _, m := range c.members {
		if kind != "code" && (m.key == "execution_count" || m.key == "outputs") {
			continue
		}
		text, ours := set[m.key]
		if !ours {
			text = string(nb.text(m.value))
		}
		delete(set, m.key)
		fields = append(fields, [2]string{m.key, text})
	}
	for _, key := range []string{"cell_type", "execution_count", "outputs", "source"} {
		if text, missing := set[key]; missing {
			fields = append(fields, [2]string{key, text})
		}
	}
	return nb.splice(c.piece, nb.cell(fields)), cellPlace{i, c.id, kind}
}

// cell writes a cell in the file's layout.
func (nb *notebook) cell(fields [][2]string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range fields {
		b.WriteString(nb.before(i, nb.indents[2]) + jsonString(f[0]) + nb.colon + f[1])
	}
	b.WriteString(nb.newline + nb.indents[1] + "}")
	return b.String()
}

// before is what stands before entry i of a list or object.
func (nb *notebook) before(i int, indent string) string {
	switch {
	case i == 0:
		return nb.newline + indent
	case nb.newline == "" && nb.colon != ":":
		return ", "
	}
	return "," + nb.newline + indent
}

// source writes a source as notebooks keep it: a list of its lines.
func (nb *notebook) source(s string) string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return "[]"
	}
	step, _ := strings.CutPrefix(nb.indents[2], nb.indents[1])
	var b strings.Builder
	b.WriteByte('[')
	for i, line := range lines {
		b.WriteString(nb.before(i, nb.indents[2]+step) + jsonString(line))
	}
	if nb.newline != "" {
		b.WriteString(nb.newline + nb.indents[2])
	}
	b.WriteByte(']')
	return b.String()
}

// newCellID makes an id as Jupyter does: 8 hexadecimal digits.
func newCellID() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
