package cells

import "testing"

// A provider may say that a request has several events, and yield one of them: where that belongs is asked all the same.
func TestTheOnlyEventIsTheFirst(t *testing.T) {
	for _, p := range []*Placement{{where: []int32{here}}, {where: []int32{here, here}, mine: []int32{0, 1}}} {
		if at := p.At(0); at != 0 {
			t.Errorf("the first of %d is number %d", p.Events(), at)
		}
	}
}
