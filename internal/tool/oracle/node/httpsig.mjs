// Signs and verifies requests with two published libraries for HTTP message signatures. Reads a JSON array of cases from
// standard input and writes one answer for each: of a case with sign the headers that the library makes, else true or
// false. That the digest is that of the body is up to whoever verifies, with either library.
import { readFileSync } from "node:fs";
import { constants, createHash, createHmac, createPrivateKey, createPublicKey, sign, timingSafeEqual, verify } from "node:crypto";
import { createSigner, createVerifier, httpbis } from "http-message-signatures";
import { createSignature, verifySignature } from "http-message-sig";

const required = ["@method", "@authority", "@path", "@query", "content-digest", "content-type", "idempotency-key"];

const digestOf = (body) => `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
const bodyFits = ({ headers, body }) => headers["Content-Digest"] === digestOf(body);

const libraries = {
  "http-message-signatures": {
    async sign({ algorithm, key, method, url, headers, covered, created }) {
      const secret = algorithm === "hmac-sha256" ? key : createPrivateKey(key);
      const params = ["created", "keyid", "alg"];
      const paramValues = { created: new Date(created * 1000), keyid: "k1", alg: algorithm };
      const made = await httpbis.signMessage({ key: createSigner(secret, algorithm, "k1"), name: "theirs", fields: covered, params, paramValues }, { method, url, headers });
      return made.headers;
    },
    async verify({ algorithm, key, method, url, headers }) {
      const secret = algorithm === "hmac-sha256" ? key : createPublicKey(key);
      const keyLookup = async ({ keyid }) => (keyid === "k1" ? { id: keyid, algs: [algorithm], verify: createVerifier(secret, algorithm) } : null);
      return (await httpbis.verifyMessage({ keyLookup, requiredFields: required, requiredParams: ["created"], maxAge: 300 }, { method, url, headers })) === true;
    },
  },
  // It has algorithms for keys of WebCrypto, two of them; the others are those of Node.
  "http-message-sig": {
    async sign({ algorithm, key, method, url, headers, covered, created }) {
      const signer = { algorithm, sign: (data) => signWith(algorithm, key, data) };
      const made = await createSignature(message(method, url, headers), { label: "theirs", components: covered, parameters: { created, keyid: "k1", alg: algorithm }, signer });
      return { ...headers, "Signature-Input": made.signatureInput, Signature: made.signature };
    },
    async verify({ algorithm, key, method, url, headers }) {
      const verifier = { algorithm, verify: (data, signature) => verifyWith(algorithm, key, data, signature) };
      const resolveVerifier = ({ parameters }) => {
        if (parameters.keyid !== "k1") throw new Error("unknown key");
        return verifier;
      };
      const policy = { algorithms: [algorithm], requiredComponents: required, requiredParameters: ["created", "keyid"], maxAge: 300, clockSkew: 5 };
      await verifySignature(message(method, url, headers), { policy, resolveVerifier });
      return true;
    },
  },
};

const message = (method, targetUri, headers) => ({ kind: "request", method, targetUri, fields: Object.entries(headers).map(([name, value]) => ({ name, value })) });

const options = {
  ed25519: [null, {}],
  "ecdsa-p256-sha256": ["sha256", { dsaEncoding: "ieee-p1363" }],
  "ecdsa-p384-sha384": ["sha384", { dsaEncoding: "ieee-p1363" }],
  "rsa-pss-sha512": ["sha512", { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }],
  "rsa-v1_5-sha256": ["sha256", { padding: constants.RSA_PKCS1_PADDING }],
};

const mac = (key, data) => createHmac("sha256", key).update(data).digest();

function signWith(algorithm, key, data) {
  if (algorithm === "hmac-sha256") return mac(key, data);
  const [hash, more] = options[algorithm];
  return sign(hash, data, { key: createPrivateKey(key), ...more });
}

function verifyWith(algorithm, key, data, signature) {
  if (algorithm === "hmac-sha256") return signature.length === 32 && timingSafeEqual(mac(key, data), signature);
  const [hash, more] = options[algorithm];
  return verify(hash, data, { key: createPublicKey(key), ...more }, signature);
}

async function answer(c) {
  const library = libraries[c.library];
  if (c.sign) return library.sign(c);
  try {
    return (await library.verify(c)) && bodyFits(c);
  } catch {
    return false;
  }
}

const answers = [];
for (const c of JSON.parse(readFileSync(0, "utf8"))) answers.push(await answer(c));
console.log(JSON.stringify(answers));
