package ingest

import "sync/atomic"

// reseen tells which events came again for the first time in an hour. It takes the same memory however many there are:
// each event has one place, in which another one may take its turn. So of very many in an hour a few
// count again, with their third copy.
type reseen struct {
	places atomic.Pointer[[1 << placeBits]atomic.Uint32] // what was seen there last; nil before the first copy
}

// placeBits makes room for 256 KiB of places.
const placeBits = 16

// first reports whether no copy of the event is known to have come in this hour.
func (s *reseen) first(event, hour int64) bool {
	places := s.places.Load()
	if places == nil {
		s.places.CompareAndSwap(nil, new([1 << placeBits]atomic.Uint32))
		places = s.places.Load()
	}
	h := mix(uint64(event) ^ mix(uint64(hour)))
	mark := uint32(h) | 1
	return places[h>>(64-placeBits)].Swap(mark) != mark
}

// mix spreads numbers that are close to each other (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
