package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// errPlace is why arguments don't go into some shell commands.
var errPlace = errors.New("an argument ($1, $ARGUMENTS, {{args}}) can be a word of a shell command, or stand between double quotes, nowhere else")

// insertArgs puts the arguments into the shell command of a command file, each
// quoted for its place, so that no argument is ever more than an argument.
func insertArgs(command string, s style, args string, words []string) (string, error) {
	if s == braces {
		if strings.Contains(command, "ARGUMENTS") && strings.Contains(command, "{{args}}") {
			return "", fmt.Errorf("the shell command %q: {{args}} and ARGUMENTS together cannot be told apart", command)
		}
		if !strings.Contains(command, "{{args}}") {
			return command, nil
		}
		command = strings.ReplaceAll(command, "{{args}}", "${ARGUMENTS}")
	} else if !dollarArgs().MatchString(command) {
		return command, nil
	}
	tree, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return "", fmt.Errorf("the shell command %q cannot be read: %w", command, err)
	}
	ins := inserter{style: s, args: args, words: words}
	syntax.Walk(tree, ins.visit)
	if ins.err != nil {
		return "", fmt.Errorf("the shell command %q: %w", command, ins.err)
	}
	return ins.apply(command), nil
}

// edit replaces a range of a command.
type edit struct {
	from, to uint
	text     string
}

type inserter struct {
	style style
	args  string
	words []string

	above []syntax.Node
	edits []edit
	err   error
}

func (ins *inserter) visit(node syntax.Node) bool {
	if node == nil {
		ins.above = ins.above[:len(ins.above)-1]
		return true
	}
	switch n := node.(type) {
	case *syntax.ParamExp:
		if n.Param != nil && isArg(n.Param.Value) {
			ins.param(n)
		}
	case *syntax.SglQuoted:
		if dollarArgs().MatchString(n.Value) {
			ins.fail(errPlace) // the file's author means the argument, the shell wouldn't
		}
	}
	ins.above = append(ins.above, node)
	return true
}

func isArg(name string) bool {
	return name == "ARGUMENTS" || len(name) == 1 && '1' <= name[0] && name[0] <= '9'
}

func (ins *inserter) fail(err error) {
	if ins.err == nil {
		ins.err = err
	}
}

// param replaces $ARGUMENTS or $1.
func (ins *inserter) param(p *syntax.ParamExp) {
	if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		ins.fail(errPlace)
		return
	}
	quoted, err := ins.inQuotes()
	if err != nil {
		ins.fail(err)
		return
	}
	text := ins.value(p.Param.Value, quoted)
	ins.edits = append(ins.edits, edit{from: p.Pos().Offset(), to: p.End().Offset(), text: text})
}

// inQuotes reports whether the place is between double quotes.
func (ins *inserter) inQuotes() (bool, error) {
	n := len(ins.above)
	for _, a := range ins.above {
		switch a := a.(type) {
		case *syntax.CmdSubst:
			if a.Backquotes { // there a backslash means something else
				return false, errPlace
			}
		case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.ExtGlob, *syntax.CStyleLoop:
			return false, errPlace
		case *syntax.Redirect:
			if a.Hdoc != nil {
				return false, errPlace
			}
		}
	}
	if n == 0 {
		return false, errPlace
	}
	if q, ok := ins.above[n-1].(*syntax.DblQuoted); ok {
		if q.Dollar {
			return false, errPlace
		}
		return true, nil
	}
	if _, ok := ins.above[n-1].(*syntax.Word); !ok || n < 2 {
		return false, errPlace
	}
	switch ins.above[n-2].(type) {
	case *syntax.CallExpr, *syntax.Assign, *syntax.WordIter, *syntax.Redirect:
		return false, nil
	}
	return false, errPlace
}

// value is the text for a name. Unquoted $ARGUMENTS is a word for each
// argument, as it would be in a shell.
func (ins *inserter) value(name string, quoted bool) string {
	value := ins.args
	if name != "ARGUMENTS" {
		value = ""
		if n := int(name[0] - '0'); n <= len(ins.words) {
			value = ins.words[n-1]
		}
	}
	switch {
	case quoted:
		return inDoubleQuotes.Replace(clean(value))
	case name == "ARGUMENTS" && ins.style == dollars:
		all := make([]string, len(ins.words))
		for i, w := range ins.words {
			all[i] = quoteWord(w)
		}
		return strings.Join(all, " ")
	case value == "" && ins.style == dollars:
		return "" // as an unset parameter: no word
	}
	return quoteWord(value)
}

var inDoubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")

func quoteWord(w string) string {
	return "'" + strings.ReplaceAll(clean(w), "'", `'\''`) + "'"
}

// clean drops what no shell command can hold.
func clean(w string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(w, "\uFFFD"), "\x00", "")
}

func (ins *inserter) apply(command string) string {
	slices.SortFunc(ins.edits, func(a, b edit) int { return int(a.from) - int(b.from) })
	var sb strings.Builder
	at := uint(0)
	for _, e := range ins.edits {
		sb.WriteString(command[at:e.from])
		sb.WriteString(e.text)
		at = e.to
	}
	sb.WriteString(command[at:])
	return sb.String()
}
