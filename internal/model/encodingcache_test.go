package model_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentcli/agent/internal/model"
)

// encoder encodes messages as their IDs and counts.
type encoder struct {
	cache model.EncodingCache[string]
	count int
}

// encode returns the encodings, and how many of them were made anew.
func (e *encoder) encode(messages ...*model.Message) (got []string, made int) {
	before := e.count
	got = e.cache.Messages(messages, func(m *model.Message) string { e.count++; return m.ID })
	return got, e.count - before
}

func named(ids string) []*model.Message {
	var all []*model.Message
	for _, id := range strings.Fields(ids) {
		all = append(all, &model.Message{ID: id})
	}
	return all
}

func ids(messages []*model.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.ID)
	}
	return all
}

func TestEachMessageIsEncodedOnce(t *testing.T) {
	t.Parallel()
	m := named("a b c d e")
	var e encoder
	for _, c := range []struct {
		what     string
		messages []*model.Message
		made     int
	}{
		{"nothing", nil, 0},
		{"the first", m[:1], 1},
		{"two more", m[:3], 2},
		{"the same", m[:3], 0},
		{"one moved behind a new one", []*model.Message{m[0], m[3], m[1]}, 1},
		{"one left out", []*model.Message{m[0], m[1]}, 0},
		{"one that was forgotten", []*model.Message{m[0], m[1], m[2]}, 1},
		{"shorter", m[:2], 0},
		{"another first message", m[1:3], 2},
		{"the former first message", m[:2], 0},
		{"the same text at another address", append(named("a"), m[1]), 2},
	} {
		got, made := e.encode(c.messages...)
		if diff := cmp.Diff(ids(c.messages), got); diff != "" || made != c.made {
			t.Errorf("%s: %d encoded, want %d\n%s", c.what, made, c.made, diff)
		}
	}
}

func TestEightConversationsAreRemembered(t *testing.T) {
	t.Parallel()
	roots := named("a b c d e f g h i")
	var e encoder
	for round := range 2 {
		for i := range 8 {
			if _, made := e.encode(roots[i]); made != 1-round {
				t.Errorf("round %d, conversation %d: %d encoded", round, i, made)
			}
		}
	}
	e.encode(roots[0]) // b is now the one that was used longest ago
	e.encode(roots[8])
	if _, made := e.encode(roots[0]); made != 0 {
		t.Error("a conversation that was used lately is forgotten")
	}
	if _, made := e.encode(roots[1]); made != 1 {
		t.Error("the ninth conversation is remembered too")
	}
}

func TestEncodingsThatWereGivenOutDoNotChange(t *testing.T) {
	t.Parallel()
	const ends = 20 // so many that there is room behind the encodings at some
	m := named(strings.Repeat("m ", ends+2))
	for i := range m {
		m[i].ID += strconv.Itoa(i)
	}
	var e encoder
	for n := 1; n <= ends; n++ {
		history := slices.Clone(m[:n])
		base, _ := e.encode(history...)
		longer, _ := e.encode(m[:n+1]...)
		_ = append(base, "overwritten") // by a caller that goes on with it
		e.encode(history...)
		other, _ := e.encode(append(history, m[n+1])...)
		history[0] = m[n+1]
		again, made := e.encode(append(slices.Clone(m[:n]), m[n+1])...)
		for _, c := range []struct{ got, want []string }{
			{base, ids(m[:n])},
			{longer, ids(m[:n+1])},
			{other, append(ids(m[:n]), m[n+1].ID)},
			{again, other},
		} {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%d messages: %s", n, diff)
			}
		}
		if made != 0 {
			t.Errorf("%d messages: a caller's own slice matters", n)
		}
		e.encode(m[:n]...)
	}
}

func TestOneConversationExtendedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	const ends = 20 // so many that there is room behind the encodings at some
	for n := 1; n <= ends; n++ {
		m := named(strings.Repeat("m ", n) + "one other")
		var e encoder
		for k := 1; k <= n; k++ {
			e.encode(m[:k]...)
		}
		one, other := m[:n+1], append(slices.Clone(m[:n]), m[n+1])
		var first []string
		second := e.cache.Messages(other, func(m *model.Message) string {
			first, _ = e.encode(one...) // overtakes
			return m.ID
		})
		if diff := cmp.Diff([][]string{ids(one), ids(other)}, [][]string{first, second}); diff != "" {
			t.Errorf("%d messages: %s", n, diff)
		}
	}
}

func TestConversationsAtOnce(t *testing.T) {
	t.Parallel()
	shared := named("a b c d e f g h")
	var cache model.EncodingCache[string]
	encode := func(m *model.Message) string { return m.ID }
	tools := []model.ToolSpec{{Name: "read"}, {Name: "write"}}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			// Half of them go on from the same messages, so that they extend
			// one conversation at once.
			messages := slices.Clone(shared)
			if i%2 == 1 {
				messages[0] = &model.Message{ID: "own"}
			}
			for range 50 {
				for n := 1; n <= len(messages); n++ {
					if got := cache.Messages(messages[:n], encode); !slices.Equal(got, ids(messages[:n])) {
						t.Errorf("got %v, want %v", got, ids(messages[:n]))
					}
				}
				messages = append(messages, &model.Message{ID: "more"})
				list, err := cache.Tools(tools[:1+i%2], encodeName)
				if want := strings.Join([]string{`"read"`, `"write"`}[:1+i%2], ","); err != nil || string(list) != want {
					t.Errorf("tools %s (%v), want %s", list, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestCachedEncodingsAreTheFreshOnes(t *testing.T) {
	t.Parallel()
	pool := named("a b c d e f g h i j k l")
	rapid.Check(t, func(t *rapid.T) {
		var e encoder
		var history []*model.Message
		var given [][]string
		var want [][]string
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0: // another history
				history = rapid.SliceOfN(rapid.SampledFrom(pool), 0, 12).Draw(t, "history")
			case 1: // cut
				history = history[:rapid.IntRange(0, len(history)).Draw(t, "length")]
			default: // grown, as nearly always
				history = append(slices.Clip(history), rapid.SampledFrom(pool).Draw(t, "message"))
			}
			got, _ := e.encode(history...)
			given, want = append(given, got), append(want, ids(history))
		}
		if diff := cmp.Diff(want, given); diff != "" {
			t.Fatal(diff)
		}
	})
}

func encodeName(t model.ToolSpec) ([]byte, error) { return model.EncodeJSON(t.Name) }

func TestEachListOfToolsIsEncodedOnce(t *testing.T) {
	t.Parallel()
	var cache model.EncodingCache[string]
	count := 0
	encode := func(s model.ToolSpec) ([]byte, error) {
		count++
		return model.EncodeJSON(s.Name + "|" + s.Description + "|" + string(s.Schema))
	}
	list := []model.ToolSpec{{Name: "read", Schema: json.RawMessage("{}")}, {Name: "write"}}
	fewer := slices.Clone(list[:1])
	for _, c := range []struct {
		what   string
		change func()
		tools  *[]model.ToolSpec
		want   string
		made   int
	}{
		{"new", func() {}, &list, `"read||{}","write||"`, 2},
		{"the same", func() { list = slices.Clone(list) }, &list, `"read||{}","write||"`, 0},
		{"a sub-agent's", func() {}, &fewer, `"read||{}"`, 1},
		{"the same again", func() {}, &list, `"read||{}","write||"`, 0},
		{"a sub-agent's again", func() {}, &fewer, `"read||{}"`, 0},
		{"another schema, in place", func() { list[0].Schema = json.RawMessage("[]") }, &list, `"read||[]","write||"`, 2},
		{"another description, in place", func() { list[1].Description = "d" }, &list, `"read||[]","write|d|"`, 2},
		{"another name, in place", func() { list[1].Name = "edit" }, &list, `"read||[]","edit|d|"`, 2},
		{"none", func() { list = nil }, &list, "", 0},
	} {
		c.change()
		before := count
		got, err := cache.Tools(*c.tools, encode)
		if err != nil || string(got) != c.want || count-before != c.made {
			t.Errorf("%s: got %s (%v), %d encoded; want %s, %d encoded", c.what, got, err, count-before, c.want, c.made)
		}
	}
}

func TestToolsThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	var cache model.EncodingCache[string]
	tools := []model.ToolSpec{{Name: "good"}, {Name: "bad"}}
	bad := errors.New("bad schema")
	for range 2 { // a failure is not remembered as a list
		list, err := cache.Tools(tools, func(t model.ToolSpec) ([]byte, error) {
			if t.Name == "bad" {
				return nil, bad
			}
			return encodeName(t)
		})
		if !errors.Is(err, bad) || list != nil {
			t.Errorf("%s, %v", list, err)
		}
	}
	if list, err := cache.Tools(tools, encodeName); err != nil || string(list) != `"good","bad"` {
		t.Errorf("%s, %v", list, err)
	}
}

// BenchmarkEncodingCache is a conversation of 400 messages: 200 requests, each
// with two more.
func BenchmarkEncodingCache(b *testing.B) {
	messages := make([]*model.Message, 400)
	for i := range messages {
		messages[i] = &model.Message{}
	}
	encode := func(m *model.Message) *model.Message { return m }
	b.ReportAllocs()
	for b.Loop() {
		var cache model.EncodingCache[*model.Message]
		for n := 2; n <= len(messages); n += 2 {
			cache.Messages(messages[:n], encode)
		}
	}
}
