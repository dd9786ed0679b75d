package httpsig_test

import "github.com/hookonce/hookonce/internal/httpsig"

// selfMade: see TestSelfMadeVectors.
var selfMade = []struct {
	algorithm                httpsig.Algorithm
	public, input, signature string
}{
	{httpsig.ECDSAP256SHA256, `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEPTkdvsnXFxu689mS4arbcvpv7vry
7iArug6gpKKbKeLKgSo3LytvvS6Iff/eYh2CFW5FaE8Xh1nYq7RrWcTkeQ==
-----END PUBLIC KEY-----
`,
		`a=("@method" "@authority" "@path" "@query" "content-type");created=1618884473;keyid="test-p256"`,
		"a=:AV7yjOfAiM0gCEAYXkoiLXyfiKZ3sGOywkVipDLqtMmqiAI+1S0sjhi0myqekD+2Iff0QdSyH67gWrOBJWMOXg==:"},
	{httpsig.ECDSAP384SHA384, `-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEin/R+SHmeHEuPlQPvxX1ULhJIfrPHrRL
6ZXGpI7FyS6II0uhsJ6vtOZTO6eBddSo5aR7fxPZ78G/+5bJBAvso3MWHZNrULT/
Uu0Z/PCQri924vCfUZaPp5djUopbHOiH
-----END PUBLIC KEY-----
`,
		`a=("@method" "@authority" "@path" "@query" "content-type");created=1618884473;keyid="test-p384"`,
		"a=:mOVhE123QLj82Ns/Q11F9IH3Q6YnnUKLfifroXW2r5Ad1pqvK083gGzq+M9qtyd2mwPyMoGR8LI/V3BmbwOhm7HmddwbsUS3YFrFqeSAWRoBI8//YIb+qPviyCPfkMYO:"},
	{httpsig.RSAv15SHA256, `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoyTHaCAP0zwmRy5M37wb
HSDCBy661z7FkCdgdR1QXxaPfyaUdbtxmZ9YUkH5MGoyZOcjACaqdG2qeO/9HmUw
cyBqbMWPSQ44bIxsu6S9PXninG/x9D1BgomkaPVqum6yUtWbw9nfhWw06zvW1t5Q
FtpWC1FDaXHF14KonCnoMsG3Kp6cLz1Hwq75Bz6N2CKJ+nbFk91p+5TyFUTo9SFc
Mg6gQmPhaxBNe28JATAyjYBjQ/GgKGoJb3YEMhgRfGDR0ALL40+pkpf5d0TH41Lk
B8x7WXJ4loS1k1HTZun/CWdOmf9MH7pnIbBVii6MrzaVXglS5FSUP8GuwQBLoIEv
LQIDAQAB
-----END PUBLIC KEY-----
`,
		`a=("@method" "@authority" "@path" "@query" "content-type");created=1618884473;keyid="test-rsa"`,
		"a=:ZPt7VqCpFCGOPolWelC5IYeR1CtTdDq2CQOaGmAgd6aiS+bpDHK3rL7vKNhg9qFzI9j285FdP+hhuAqVt5jaOQqbEIh7qpNrVyvoQl3ZFYUwSQ3VkbagIlfQaGeW8IoXX58OHj3I87vCZ5CbF3WPIXn8XGuD4T2N3WViJKlOLBmMqIasvufbUEBvwXnGEzQCZGXGcwH/adeg9D4FF7F+3ojFv68zMEFGclNytDOxRGQ3D5mX/NQaPQuZmD/PfxYMaQekEJlntV9oOrtSaZzs31IK8QylFM4nANtuA++7U4QLwTYWQUFKoSSAaWqhKt6rqg/L8+EhCXR6e0nEyV61gQ==:"},
}
