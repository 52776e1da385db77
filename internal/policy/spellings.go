package policy

import "slices"

// ToolSpellings returns all names of the tool that name is a name of: ours
// first, then its aliases in order. A name that is nobody's alias comes back
// alone, or with the aliases that stand for it.
func ToolSpellings(name string) []string {
	canonical := CanonicalTool(name)
	names := []string{canonical}
	for alias, tool := range toolAliases {
		if tool == canonical {
			names = append(names, alias)
		}
	}
	slices.Sort(names[1:])
	return names
}
