package tools

import (
	"fmt"
	"slices"
	"strings"
)

// fileTypes are the file types that grep_search knows by name: the globs of
// their files' names. The names and globs follow ripgrep's.
func fileTypes() map[string]string {
	return map[string]string{
		"asm":        "*.asm *.s *.S",
		"awk":        "*.awk",
		"bazel":      "*.bazel *.bzl BUILD WORKSPACE",
		"c":          "*.[chH] *.[chH].in *.cats",
		"clojure":    "*.clj *.cljc *.cljs *.cljx",
		"cmake":      "*.cmake CMakeLists.txt",
		"cpp":        "*.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl *.[ChH].in *.cc.in *.[ch]pp.in *.[ch]xx.in *.hh.in",
		"cs":         "*.cs",
		"css":        "*.css *.scss",
		"csv":        "*.csv",
		"dart":       "*.dart",
		"docker":     "*Dockerfile*",
		"elixir":     "*.ex *.eex *.exs",
		"elm":        "*.elm",
		"erlang":     "*.erl *.hrl",
		"fish":       "*.fish",
		"fsharp":     "*.fs *.fsi *.fsx",
		"go":         "*.go",
		"gradle":     "*.gradle",
		"graphql":    "*.graphql *.graphqls",
		"groovy":     "*.groovy *.gradle",
		"h":          "*.h *.hpp",
		"haskell":    "*.c2hs *.cpphs *.hs *.hsc *.lhs",
		"html":       "*.ejs *.htm *.html",
		"java":       "*.java *.jsp *.jspx *.properties",
		"js":         "*.js *.jsx *.vue",
		"json":       "*.json composer.lock",
		"jsonl":      "*.jsonl",
		"julia":      "*.jl",
		"kotlin":     "*.kt *.kts",
		"less":       "*.less",
		"log":        "*.log",
		"lua":        "*.lua",
		"make":       "*.mak *.mk [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile [Mm]akefile.am [Mm]akefile.in",
		"markdown":   "*.markdown *.md *.mdown *.mkdn",
		"md":         "*.markdown *.md *.mdown *.mkdn",
		"nix":        "*.nix",
		"objc":       "*.h *.m",
		"ocaml":      "*.ml *.mli *.mll *.mly",
		"perl":       "*.perl *.pl *.PL *.plh *.plx *.pm *.t",
		"php":        "*.php *.php3 *.php4 *.php5 *.phtml",
		"proto":      "*.proto",
		"protobuf":   "*.proto",
		"py":         "*.py",
		"python":     "*.py",
		"r":          "*.R *.r *.Rmd *.Rnw",
		"rst":        "*.rst",
		"ruby":       "*.gemspec *.rb .irbrc Gemfile Rakefile",
		"rust":       "*.rs",
		"sass":       "*.sass *.scss",
		"scala":      "*.sbt *.scala",
		"sh":         "*.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc bash_login bash_logout bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc",
		"sql":        "*.psql *.sql",
		"svelte":     "*.svelte",
		"swift":      "*.swift",
		"tex":        "*.bib *.cls *.ltx *.sty *.tex",
		"tf":         "*.auto.tfvars *.tf *.tf.json *.tfvars",
		"toml":       "*.toml Cargo.lock",
		"ts":         "*.ts *.tsx",
		"tsx":        "*.tsx",
		"jsx":        "*.jsx",
		"txt":        "*.txt",
		"typescript": "*.ts *.tsx",
		"javascript": "*.js *.jsx *.vue",
		"vim":        "*.vim",
		"vue":        "*.vue",
		"xml":        "*.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt",
		"yaml":       "*.yaml *.yml",
		"zig":        "*.zig",
		"zsh":        "*.zsh .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc",
	}
}

// typeGlobs returns the globs of a file type.
func typeGlobs(name string) ([]pathGlob, error) {
	types := fileTypes()
	list, ok := types[strings.ToLower(name)]
	if !ok {
		names := make([]string, 0, len(types))
		for n := range types {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("type %q is not known; use glob instead, or one of: %s", name, strings.Join(names, ", "))
	}
	var globs []pathGlob
	for _, g := range strings.Fields(list) {
		c, err := compileGlob("**/" + g)
		if err != nil {
			return nil, err
		}
		globs = append(globs, c)
	}
	return globs, nil
}
