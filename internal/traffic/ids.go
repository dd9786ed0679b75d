package traffic

import "fmt"

// EventID returns the n-th event id of a seed: "evt_" and 16 hexadecimal digits that look random. The
// ids of one seed never repeat. All have the same length.
func EventID(seed uint64, n int) string { return fmt.Sprintf("evt_%016x", mix(mix(seed)+uint64(n))) }

// EventNumber returns the n-th event number of a seed. Those of one seed follow each other.
func EventNumber(seed uint64, n int) uint64 { return mix(seed)>>16 + uint64(n) }

// mix is the finaliser of splitmix64: a bijection, so that different input gives different output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
