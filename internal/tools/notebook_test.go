package tools

import (
	"encoding/json"
	"strings"
	"testing"
)

const notebook45 = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa1111",
   "metadata": {},
   "source": [
    "# Title <b>\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "bbbb2222",
   "metadata": {"tags": [1.50, "é"]},
   "outputs": [
    {
     "name": "stdout"
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestNotebookReplaceTouchesOneCell(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "n.ipynb", notebook45)
	b.fails(t, "notebook_edit", args{"notebook_path": "n.ipynb", "cell_id": "bbbb2222", "new_source": "x"}, "has not been read")
	b.ok(t, "read_file", args{"file_path": "n.ipynb"})
	text := b.ok(t, "notebook_edit", args{"notebook_path": "n.ipynb", "cell_id": "bbbb2222", "new_source": "a = '<é>'\nprint(a)\n"})
	wantText(t, text, `cell "bbbb2222" (cell-1)`)
	want := strings.Replace(notebook45, `   "execution_count": 3,`, `   "execution_count": null,`, 1)
	want = strings.Replace(want, "   \"outputs\": [\n    {\n     \"name\": \"stdout\"\n    }\n   ],\n   \"source\": [\n    \"print(1)\"\n   ]",
		"   \"outputs\": [],\n   \"source\": [\n    \"a = '<é>'\\n\",\n    \"print(a)\\n\"\n   ]", 1)
	wantSame(t, "notebook", b.get(t, "n.ipynb"), want)
}

func TestNotebookInsertAndDelete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    string
		index int
	}{"at the start": {"", 0}, "in the middle": {"aaaa1111", 1}, "at the end": {"cell-1", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolBench(t)
			b.put(t, "n.ipynb", notebook45)
			b.ok(t, "read_file", args{"file_path": "n.ipynb"})
			b.ok(t, "notebook_edit", args{"notebook_path": "n.ipynb", "edit_mode": "insert", "cell_id": c.at, "cell_type": "code", "new_source": "new()"})
			var nb struct {
				Cells []struct {
					ID      string    `json:"id"`
					Type    string    `json:"cell_type"`
					Source  []string  `json:"source"`
					Outputs *[]string `json:"outputs"`
				}
			}
			after := b.get(t, "n.ipynb")
			if err := json.Unmarshal([]byte(after), &nb); err != nil && !strings.Contains(err.Error(), "outputs") {
				t.Fatalf("%v in %s", err, after)
			}
			if got := nb.Cells[c.index]; len(nb.Cells) != 3 || got.Source[0] != "new()" || len(got.ID) != 8 || got.Outputs == nil {
				t.Fatalf("inserted %+v, in\n%s", got, after)
			}
			b.ok(t, "notebook_edit", args{"notebook_path": "n.ipynb", "edit_mode": "delete", "cell_id": nb.Cells[c.index].ID})
			wantSame(t, "notebook after the deletion", b.get(t, "n.ipynb"), notebook45)
		})
	}
}

func TestNotebookForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, mode, id, kind, after string }{
		"compact": {`{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"nbformat":4,"nbformat_minor":2}`, "replace", "0", "",
			`{"cells":[{"cell_type":"raw","metadata":{},"source":["S"]}],"nbformat":4,"nbformat_minor":2}`},
		"one line with blanks": {`{"cells": [{"cell_type": "raw", "source": "x"}], "nbformat": 4}`, "insert", "cell-0", "raw",
			`{"cells": [{"cell_type": "raw", "source": "x"},{"cell_type": "raw", "metadata": {}, "source": ["S"]}], "nbformat": 4}`},
		"CRLF": {"{\r\n  \"cells\": [\r\n    {\r\n      \"cell_type\": \"raw\",\r\n      \"source\": []\r\n    }\r\n  ], \"nbformat\": 4\r\n}", "replace", "0", "",
			"{\r\n  \"cells\": [\r\n    {\r\n      \"cell_type\": \"raw\",\r\n      \"source\": [\r\n        \"S\"\r\n      ]\r\n    }\r\n  ], \"nbformat\": 4\r\n}"},
		"no cells yet": {"{\n \"cells\": [],\n \"nbformat\": 4\n}", "insert", "", "markdown",
			"{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"S\"\n   ]\n  }\n ],\n \"nbformat\": 4\n}"},
		"to markdown": {`{"cells":[{"cell_type":"code","execution_count":1,"outputs":[1],"source":"x"}]}`, "replace", "0", "markdown",
			`{"cells":[{"cell_type":"markdown","source":["S"]}]}`},
		"to code": {`{"cells":[{"cell_type":"markdown","source":"x"}]}`, "replace", "0", "code",
			`{"cells":[{"cell_type":"code","source":["S"],"execution_count":null,"outputs":[]}]}`},
		"byte order mark": {"\ufeff{\"cells\":[{\"source\":\"x\"}]}", "replace", "0", "raw", "\ufeff{\"cells\":[{\"source\":[\"S\"],\"cell_type\":\"raw\"}]}"},
		"the only one":    {`{"cells":[ {"cell_type":"raw","source":"x"} ]}`, "delete", "0", "", `{"cells":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "S"
			next, _, err := editNotebook([]byte(c.before), notebookInput{CellID: c.id, Source: &source, Type: c.kind, Mode: c.mode})
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "notebook", string(next), c.after)
		})
	}
}

func TestNotebookRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for name, content := range map[string]string{"text.ipynb": "not JSON", "list.ipynb": "[]", "old.ipynb": `{"worksheets":[]}`,
		"odd.ipynb": `{"cells":{}}`, "cell.ipynb": `{"cells":[1]}`, "good.ipynb": notebook45} {
		b.put(t, name, content)
		b.ok(t, "read_file", args{"file_path": name})
	}
	for name, want := range map[string]string{"text.ipynb": "not JSON", "list.ipynb": "not a notebook", "old.ipynb": "format 4",
		"odd.ipynb": "not a list", "cell.ipynb": "cell-0", "gone.ipynb": "no such file"} {
		b.fails(t, "notebook_edit", args{"notebook_path": name, "cell_id": "0", "new_source": "x"}, want)
	}
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"cell_id": "zz", "new_source": "x"}, "aaaa1111, bbbb2222"},
		{args{"cell_id": "cell-2", "new_source": "x"}, "no cell"},
		{args{"new_source": "x"}, "cell_id is missing"},
		{args{"cell_id": "0"}, "new_source is missing"},
		{args{"edit_mode": "insert", "new_source": "x"}, "cell_type is missing"},
		{args{"edit_mode": "sing", "new_source": "x"}, "replace, insert, delete"},
		{args{"cell_id": "0", "cell_type": "x", "new_source": "x"}, "code, markdown, raw"},
	} {
		c.in["notebook_path"] = "good.ipynb"
		b.fails(t, "notebook_edit", c.in, c.want)
	}
	wantSame(t, "notebook", b.get(t, "good.ipynb"), notebook45)
}

func FuzzNotebook(f *testing.F) {
	f.Add([]byte(notebook45), "0", "x\ny", "replace", "code")
	f.Add([]byte(`{"cells":[{"a":1,"a":2}]}`), "", "", "insert", "raw")
	f.Fuzz(func(t *testing.T, data []byte, id, source, mode, kind string) {
		in := notebookInput{CellID: id, Source: &source, Mode: mode, Type: kind}
		if in.check() != nil {
			return
		}
		next, at, err := editNotebook(data, in)
		if err != nil {
			if strings.Contains(err.Error(), "defect") {
				t.Fatal(err)
			}
			return
		}
		before, _ := parseNotebook(data)
		after, err := parseNotebook(next)
		if err != nil {
			t.Fatalf("%q became %q: %v", data, next, err)
		}
		for i, c := range before.cells {
			j := i
			switch {
			case i == at.index && in.Mode != "insert":
				continue
			case i >= at.index && in.Mode == "insert":
				j++
			case i > at.index && in.Mode == "delete":
				j--
			}
			if got := string(after.text(after.cells[j].piece)); got != string(before.text(c.piece)) {
				t.Fatalf("cell %d changed from %q to %q", i, before.text(c.piece), got)
			}
		}
	})
}
