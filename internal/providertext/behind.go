package providertext

import "github.com/hookonce/hookonce/provider/spec"

// Behind says what becomes of the sender's signature behind the gateway.
func (s Sender) Behind() string {
	switch renewal, why := s.Renewal(); renewal {
	case spec.Lasts:
		return "stays good as it is"
	case spec.Fixed:
		return "**cannot be made anew**: it " + why
	}
	for _, way := range s.Verify {
		one := s.Spec
		one.Verify = []spec.Verify{way}
		if renewal, why := one.Renewal(); renewal == spec.Fixed {
			return "is made anew, unless it " + why
		}
	}
	return "is made anew"
}
