package config

import "strings"

// Closest returns the candidate that word is most likely a slip of the keyboard for, and whether
// there is one: at most a third of its letters differ.
func Closest(word string, candidates []string) (string, bool) {
	best, least := "", len(word)/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < least || d == least && best == "" {
			best, least = c, d
		}
	}
	return best, best != "" && least <= max(1, len(best)/3)
}

// suggest ends a message about an unknown word: with the closest candidate, or with all of them.
func suggest(word string, candidates []string) string {
	if c, ok := Closest(word, candidates); ok {
		return `; did you mean "` + c + `"?`
	}
	return "; write " + oneOf(candidates)
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to turn
// a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
