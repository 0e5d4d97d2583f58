"""Secrets that must never leave, and look-alikes that must stay. Put together from parts for the scanners' sake."""

from __future__ import annotations

import string

LETTERS = string.ascii_letters + string.digits


def mixed(length: int, start: int = 0) -> str:
    """Letters and digits in an order that is not a word."""
    return "".join(LETTERS[(start + at * 17 + at * at) % len(LETTERS)] for at in range(length))


def hexed(length: int, start: int = 3) -> str:
    return "".join("0123456789abcdef"[(start + at * 7 + at * at * 3) % 16] for at in range(length))


def upper(length: int) -> str:
    return "".join((string.ascii_uppercase + string.digits)[(5 + at * 11 + at * at) % 36] for at in range(length))


def pem(label: str, newline: str = "\n") -> str:
    body = newline.join(mixed(64, row) for row in range(6))
    return f"-----BEGIN {label}-----{newline}{body}{newline}-----END {label}-----"


B64 = mixed(80) + "=="
JWT = "ey" + "J" + mixed(30) + ".ey" + "J" + mixed(60, 5) + "." + mixed(43, 9)

# (kind, secret): what has a form of its own is found in any text.
FORMS: list[tuple[str, str]] = [
    ("openai", "sk" + "-" + mixed(48)),
    ("openai project", "sk" + "-proj-" + mixed(60)),
    ("openrouter", "sk" + "-or-v1-" + hexed(64)),
    ("anthropic", "sk" + "-ant-api03-" + mixed(80) + "-AA"),
    ("aws key id", "AK" + "IA" + upper(16)),
    ("aws session key id", "AS" + "IA" + upper(16)),
    ("github classic", "gh" + "p_" + mixed(36)),
    ("github oauth", "gh" + "o_" + mixed(36)),
    ("github server", "gh" + "s_" + mixed(36)),
    ("github fine-grained", "github" + "_pat_" + mixed(22) + "_" + mixed(59)),
    ("gitlab", "gl" + "pat-" + mixed(20)),
    ("gitlab deploy", "gl" + "dt-" + mixed(20)),
    ("slack bot", "xox" + "b-123456789012-123456789012-" + mixed(24)),
    ("slack user", "xox" + "p-123456789012-" + mixed(24)),
    ("slack app", "xapp" + "-1-A012345-" + mixed(30)),
    ("google api", "AI" + "za" + mixed(35)),
    ("google oauth", "ya" + "29." + mixed(60)),
    ("google client secret", "GOC" + "SPX-" + mixed(28)),
    ("stripe live", "sk" + "_live_" + mixed(24)),
    ("stripe restricted", "rk" + "_live_" + mixed(24)),
    ("stripe webhook", "wh" + "sec_" + mixed(32)),
    ("sendgrid", "S" + "G." + mixed(22) + "." + mixed(43)),
    ("twilio", "S" + "K" + hexed(32)),
    ("telegram", "123456789" + ":AA" + mixed(33)),
    ("mailchimp", hexed(32) + "-us" + "12"),
    ("mailgun", "key" + "-" + hexed(32)),
    ("npm", "np" + "m_" + mixed(36)),
    ("pypi", "py" + "pi-AgEIcHlwaS5vcmc" + mixed(60)),
    ("rubygems", "ruby" + "gems_" + hexed(48)),
    ("hugging face", "h" + "f_" + mixed(34)),
    ("digitalocean", "dop" + "_v1_" + hexed(64)),
    ("shopify", "shp" + "at_" + hexed(32)),
    ("square", "sq0" + "atp-" + mixed(22)),
    ("databricks", "da" + "pi" + hexed(32)),
    ("linear", "lin" + "_api_" + mixed(40)),
    ("notion", "nt" + "n_" + mixed(46)),
    ("figma", "fi" + "gd_" + mixed(40)),
    ("postman", "PM" + "AK-" + hexed(24) + "-" + hexed(34)),
    ("grafana", "gl" + "sa_" + mixed(32) + "_" + hexed(8)),
    ("sentry", "snt" + "rys_" + mixed(60)),
    ("vault", "hv" + "s." + mixed(90)),
    ("doppler", "dp" + ".pt." + mixed(43)),
    ("age", "AGE-SECRET" + "-KEY-1" + upper(58)),
    ("docker", "dckr" + "_pat_" + mixed(27)),
    ("supabase", "sb" + "p_" + hexed(40)),
    ("groq", "gs" + "k_" + mixed(52)),
    ("xai", "xa" + "i-" + mixed(80)),
    ("perplexity", "pp" + "lx-" + mixed(48)),
    ("replicate", "r" + "8_" + mixed(37)),
    ("atlassian", "ATA" + "TT3x" + mixed(180)),
    ("new relic", "NR" + "AK-" + upper(27)),
    ("tailscale", "ts" + "key-auth-" + mixed(12) + "-" + mixed(32)),
    ("terraform", mixed(14) + ".atlas" + "v1." + mixed(67)),
    ("jwt", JWT),
    ("rsa key", pem("RSA PRIV" + "ATE KEY")),
    ("pkcs8 key", pem("PRIV" + "ATE KEY")),
    ("openssh key", pem("OPENSSH PRIV" + "ATE KEY")),
    ("pgp key", pem("PGP PRIV" + "ATE KEY BLOCK")),
    ("key in a json string", pem("EC PRIV" + "ATE KEY", "\\n")),
]

# (kind, secret, text): what is known by what stands before it.
PLACED: list[tuple[str, str, str]] = [
    ("bearer", mixed(40), "Authorization: Bearer " + mixed(40)),
    ("bearer alone", mixed(32), f"curl -H 'X: Bearer {mixed(32)}'"),
    ("basic", B64, "authorization: Basic " + B64),
    ("header in json", mixed(30), '{"Authorization": "Token ' + mixed(30) + '"}'),
    ("slack webhook", mixed(24), "https://hooks.slack" + ".com/services/T01234567/B01234567/" + mixed(24)),
    ("discord webhook", mixed(68), "https://discord" + ".com/api/webhooks/123456789012345678/" + mixed(68)),
    ("azure account", B64, "DefaultEndpointsProtocol=https;Account" + "Key=" + B64 + ";EndpointSuffix=core"),
    ("azure bus", mixed(43) + "=", "Endpoint=sb://x/;SharedAccess" + "Key=" + mixed(43) + "="),
    ("azure signature", mixed(44), "https://x.blob.core/c?sv=2020&sig=" + mixed(44)),
    ("aws signature", hexed(64), "https://b.s3/x?a=b&X-Amz-Signature=" + hexed(64)),
    ("aws secret", mixed(40), "aws_secret_access_key = " + mixed(40)),
    ("json password", "hunter2", '{"user": "ada", "password": "hunter2"}'),
    ("escaped json password", "hunter2", r'"{\"user\": \"ada\", \"password\": \"hunter2\"}"'),
    ("python password", "s3cr3t!pw", "connect(user='ada', password='s3cr3t!pw')"),
    ("env password", "correcthorsebattery", "DB_PASSWORD=correcthorsebattery\nPORT=5432"),
    ("yaml api key", mixed(24), "api_key: " + mixed(24)),
    ("toml secret", "Zx9-pq_77aa", 'client_secret = "Zx9-pq_77aa"'),
    ("query token", "abcdefgh", "GET /x?access_token=abcdefgh&page=2"),
    ("form password", "letmein", "user=ada&password=letmein"),
    ("flag", "hunter22", "mysql --password=hunter22 -u root"),
    ("flag with space", "hunter22", "tool --token hunter22 list"),
    ("postgres url", "p4ss", "postgres://ada:p4ss@db.example/app"),
    ("redis url", "s3cret", "redis://:s3cret@cache:6379/0"),
    ("url password with at", "p@ss:word", "https://ada:p@ss:word@git.example/x.git"),
    ("token in url", mixed(40), f"https://{mixed(40)}@git.example/x.git"),
    ("set-cookie", mixed(26), f"Set-Cookie: session={mixed(26)}; Path=/; HttpOnly"),
    ("cookie", "sid=" + mixed(20), f"Cookie: sid={mixed(20)}; theme=dark"),
    ("header dict", mixed(30), "{'x-api-key': '" + mixed(30) + "'}"),
]

TEMPLATES = ("{}", "key {} end", '{{"v": "{}"}}', "a\n{}\nb", "({})", "x={};")
CANARIES: list[tuple[str, str, str]] = [
    *((kind, secret, TEMPLATES[at % len(TEMPLATES)].format(secret)) for at, (kind, secret) in enumerate(FORMS)),
    *PLACED,
]

NEAR_MISSES: list[str] = [
    hexed(40),
    "commit " + hexed(40) + " (HEAD -> main)",
    "sha256:" + hexed(64),
    "md5 " + hexed(32),
    "123e4567-e89b-42d3-a456-426614174000",
    "The password must be at least 12 characters long.",
    "Reset your password: required for all users",
    "password: str = Field(min_length=12)",
    "password = getpass.getpass()",
    "password=os.environ['DB_PASSWORD']",
    "password=user.password",
    "api_key=settings.api_key",
    "token: string",
    "token = self.tokenizer.next_token(text)",
    "secret: Optional[str] = None",
    '{"password": "<your password>"}',
    "PASSWORD=${DB_PASSWORD}",
    '"api_key": "YOUR_API_KEY"',
    "max_tokens=500000",
    '{"input_tokens": 12345678, "output_tokens": 987654}',
    "tokens: 123456789",
    "data:image/png;base64,iVBORw0KGgo" + mixed(400),
    "https://example.com/path?page=2&sort=name",
    "https://ada@example.com/repo.git",
    "http://localhost:8080/x",
    "ssh://git@example.com:22/x.git",
    "mailto:ada@example.com",
    "task-123",
    "t3/2/model/4",
    "sk-learn",
    "pip install sk-learn-contrib-estimators-and-more",
    "risk-assessment-of-the-whole-portfolio-in-2024",
    "desk-1234567890123456789012345",
    "Basic understanding of authentication",
    "the bearer internationalization",
    "Basic Internationalization guide",
    "-----BEGIN CERTIFICATE-----\n" + mixed(64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + mixed(64) + "\n-----END PUBLIC KEY-----",
    "Look for the header -----BEGIN PRIVATE" + " KEY----- in files.",
    "cookie: chocolate chip",
    "a cookie = a small cake",
    "public_key_path = keys/id.pub",
    "keyboard: qwerty12345",
    "primary_key=True, foreign_key=user_id",
    "key: t3/1/model/1",
    "idempotency_key: run-20240501-t3-1",
    "hf_hub_download(repo_id)",
    "npm_config_registry",
    "ghp_short",
    "12:30:45 AA meeting",
    "eyJ is how they begin",
    "AKIA is a prefix",
    "Norwegian: Oslo, 717710 inhabitants; see [t3].",
]
