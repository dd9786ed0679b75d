// Package closest guesses what somebody meant who made a slip of the keyboard.
package closest

import "strings"

// Word returns the candidate that word is most likely a slip of the keyboard for, and whether there is
// one: at most a third of its letters differ, or one of a short word that has others. Upper and lower
// case make no difference, and of several candidates that are equally near the first is meant.
func Word(word string, candidates []string) (string, bool) {
	best, least := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < least && d <= max(1, len(c)/3) && d < max(len(word), len(c)) {
			best, least = c, d
		}
	}
	return best, best != ""
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to get from
// a to b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
