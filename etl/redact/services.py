"""Keys of well-known services, told by how they begin, in any length: what people type into a chat is cut and made up.

The kept rule set knows most of them in the length they have and with the words that stand around them in code; in a
conversation they stand alone.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span


class Service(NamedTuple):
    """Keys of one service: how they begin, what follows, and what must stand before them."""

    rule: str
    prefix: str
    body: str


class Shape(NamedTuple):
    """Keys of one service that are told by a part in their middle."""

    rule: str
    literal: str
    """What `form` holds always, in this case."""
    sign: str
    """What a string must match (in RE2, on its padded form) before `form` can match."""
    form: re.Pattern[str]
    before: int
    """How many characters of the form may stand before the literal."""


def _simple(rule: str, *prefixes: str, body: str = r"[A-Za-z0-9_-]{16,}") -> list[Service]:
    """Services of one body; all of them ask for a dozen characters at least."""
    return [Service(rule, prefix, body) for prefix in prefixes]


_SERVICES = (
    Service("anthropic_key", "sk-", r"ant-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"[A-Za-z0-9]{20,}"),
    Service("openrouter_key", "sk-", r"or-[A-Za-z0-9_-]{12,}"),
    Service("langfuse_secret", "sk-", r"lf-[A-Za-z0-9-]{12,}"),
    Service("helicone_key", "sk-", r"helicone-[A-Za-z0-9_-]{12,}"),
    Service("aws_access_key", "AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Service("aws_access_key", "ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *_simple("github_token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", body=r"[A-Za-z0-9]{16,}"),
    *_simple("github_token", "github_pat_", body=r"[A-Za-z0-9_]{16,}"),
    *_simple(
        "gitlab_token", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "glimt-",
        "gloas-", body=r"[A-Za-z0-9_.-]{12,}"
    ),
    Service("slack_token", "xox", r"[abceoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    Service("slack_token", "xapp-", r"[A-Za-z0-9-]{12,}"),
    Service("google_key", "AIza", r"[A-Za-z0-9_-]{30,}"),
    *_simple("google_key", "ya29.", "GOCSPX-"),
    *_simple("huggingface_token", "hf_", "api_org_", body=r"[A-Za-z0-9]{20,}"),
    *_simple("npm_token", "npm_", body=r"[A-Za-z0-9]{20,}"),
    *_simple("pypi_token", "pypi-", body=r"[A-Za-z0-9_-]{32,}"),
    Service("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}"),
    *_simple("stripe_key", "k_live_", "k_test_", body=r"[A-Za-z0-9]{10,}"),
    *_simple("stripe_key", "whsec_", body=r"[A-Za-z0-9+/=]{16,}"),
    *_simple("groq_key", "gsk_", body=r"[A-Za-z0-9]{20,}"),
    *_simple("xai_key", "xai-", body=r"[A-Za-z0-9]{20,}"),
    *_simple("perplexity_key", "pplx-", body=r"[A-Za-z0-9]{20,}"),
    *_simple("nvidia_key", "nvapi-", body=r"[A-Za-z0-9_-]{20,}"),
    Service("langsmith_key", "lsv2_", r"(?:pt|sk)_[A-Za-z0-9_]{20,}"),
    *_simple("tavily_key", "tvly-"),
    *_simple("pinecone_key", "pcsk_"),
    *_simple("fireworks_key", "fw_", body=r"[A-Za-z0-9]{22,}"),
    *_simple("new_relic_key", "NRAK-", "NRJS-", "NRII-", "NRIQ-", "NRRA-", "NRSP-"),
    *_simple("sentry_token", "sntrys_", body=r"[A-Za-z0-9_=+/-]{32,}"),
    *_simple("sentry_token", "sntryu_", "sntrya_", body=r"[0-9a-f]{32,}"),
    *_simple("grafana_token", "glsa_", "glc_", body=r"[A-Za-z0-9_=+/-]{16,}"),
    *_simple("databricks_token", "dapi", body=r"[0-9a-f]{32}(?:-[0-9]+)?"),
    *_simple("digitalocean_token", "dop_v1_", "doo_v1_", "dor_v1_", body=r"[0-9a-f]{32,}"),
    *_simple("docker_token", "dckr_pat_", "dckr_oat_"),
    Service("notion_token", "secret_", r"[A-Za-z0-9]{43}(?![A-Za-z0-9_])"),
    *_simple("notion_token", "ntn_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("replicate_token", "r8_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("square_token", "sq0atp-", "sq0csp-", "sq0idp-"),
    *_simple("vault_token", "hvs.", "hvb.", "hvr.", body=r"[A-Za-z0-9_-]{20,}"),
    *_simple("linear_key", "lin_api_", "lin_oauth_"),
    *_simple("shopify_token", "shpat_", "shpca_", "shppa_", "shpss_", body=r"[0-9a-fA-F]{24,}"),
    *_simple("postman_key", "PMAK-"),
    *_simple("atlassian_token", "ATATT3", "ATCTT3", "ATBB", body=r"[A-Za-z0-9_=-]{20,}"),
    *_simple("figma_token", "figd_", "figu_"),
    *_simple("doppler_token", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa."),
    *_simple("planetscale_token", "pscale_tkn_", "pscale_pw_", "pscale_oauth_", body=r"[A-Za-z0-9_.-]{20,}"),
    *_simple("supabase_token", "sbp_", "sb_secret_", body=r"[A-Za-z0-9_-]{20,}"),
    *_simple("netlify_token", "nfp_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("buildkite_token", "bkua_", "bkaj_", body=r"[0-9a-f]{30,}"),
    *_simple("circleci_token", "CCIPAT_", "CCIPRJ_"),
    *_simple("sonar_token", "sqp_", "squ_", "sqa_", body=r"[0-9a-f]{32,}"),
    *_simple("heroku_key", "HRKU-", body=r"[A-Za-z0-9_-]{30,}"),
    *_simple("rubygems_key", "rubygems_", body=r"[0-9a-f]{32,}"),
    *_simple("pulumi_token", "pul-", body=r"[0-9a-f]{32,}"),
    *_simple("prefect_key", "pnu_", "pnb_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("sendinblue_key", "xkeysib-", "xsmtpsib-"),
    *_simple("typeform_token", "tfp_", body=r"[A-Za-z0-9_.-]{30,}"),
    *_simple("onepassword_token", "ops_eyJ", body=r"[A-Za-z0-9_-]{30,}"),
    *_simple("age_key", "AGE-SECRET-KEY-1", body=r"[A-Z0-9]{40,}"),
    *_simple("dynatrace_token", "dt0c01."),
    Service("mailgun_key", "key-", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    *_simple("honeycomb_key", "hcaik_", "hcamk_", "hcbik_", "hcxik_", "hcxmk_", body=r"[A-Za-z0-9]{32,}"),
    Service("launchdarkly_key", "sdk-", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    Service("launchdarkly_key", "api-", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    *_simple("dropbox_token", "sl.u.", "sl.B", "sl.A", body=r"[A-Za-z0-9_-]{60,}"),
    Service("resend_key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    *_simple("flutterwave_key", "FLWSECK-", "FLWSECK_TEST-", body=r"[A-Za-z0-9-]{16,}"),
    *_simple("facebook_token", "EAA", body=r"[A-Za-z0-9]{60,}"),
    *_simple("square_token", "EAAA", body=r"[A-Za-z0-9_-]{56,}"),
    *_simple("fly_token", "fo1_", "fm2_", body=r"[A-Za-z0-9_=+/-]{30,}"),
    *_simple("tailscale_key", "tskey-", body=r"[A-Za-z0-9-]{16,}"),
    *_simple("posthog_key", "phx_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("sourcegraph_token", "sgp_", body=r"[A-Za-z0-9_]{32,}"),
    *_simple("apify_token", "apify_api_", body=r"[A-Za-z0-9]{24,}"),
    *_simple("cerebras_key", "csk-", body=r"[A-Za-z0-9]{32,}"),
    *_simple("browserbase_key", "bb_live_", "bb_test_", body=r"[A-Za-z0-9_-]{20,}"),
    *_simple("e2b_key", "e2b_", body=r"[0-9a-f]{32,}"),
    *_simple("firecrawl_key", "fc-", body=r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    *_simple("elevenlabs_key", "sk_", body=r"[0-9a-f]{40,}"),
    *_simple("jina_key", "jina_", body=r"[A-Za-z0-9]{40,}"),
    *_simple("llamacloud_key", "llx-", body=r"[A-Za-z0-9]{32,}"),
    *_simple("voyage_key", "pa-", body=r"[A-Za-z0-9_-]{40,}"),
    *_simple("gitlab_token", "GR1348941", body=r"[A-Za-z0-9_-]{16,}"),
    *_simple("shippo_token", "shippo_live_", "shippo_test_", body=r"[0-9a-f]{32,}"),
    *_simple("crates_token", "cio", body=r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    *_simple("nuget_key", "oy2", body=r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    *_simple("jfrog_token", "cmVmdGtuO", body=r"[A-Za-z0-9]{40,}"),
    *_simple("artifactory_key", "AKC", body=r"[A-Za-z0-9]{60,}"),
    *_simple("neon_key", "napi_", body=r"[A-Za-z0-9]{32,}"),
    *_simple("trigger_key", "tr_dev_", "tr_prod_", "tr_stg_", "tr_preview_", body=r"[A-Za-z0-9]{16,}"),
    *_simple("inngest_key", "signkey-", body=r"[a-z]+-[0-9a-f]{32,}"),
    *_simple("render_key", "rnd_", body=r"[A-Za-z0-9]{24,}"),
    *_simple("runpod_key", "rpa_", body=r"[A-Z0-9]{32,}\w*"),
    *_simple("vercel_token", "vck_", "vcp_", body=r"[A-Za-z0-9]{24,}"),
    *_simple("contentful_token", "CFPAT-", body=r"[A-Za-z0-9_-]{40,}"),
    *_simple("twitter_token", "AAAAAAAAAAAAAAAAAAAAA", body=r"[A-Za-z0-9%]{40,}"),
    *_simple("yandex_token", "y0_", "AQVN", body=r"[A-Za-z0-9_-]{32,}"),
    *_simple("google_refresh_token", "1//0", body=r"[A-Za-z0-9_-]{30,}"),
    *_simple("mws_token", "amzn.mws.", body=r"[0-9a-f-]{36}"),
    *_simple("hubspot_token", "pat-na1-", "pat-na2-", "pat-eu1-", body=r"[0-9a-f-]{36}"),
    *_simple("alibaba_key", "LTAI", body=r"[A-Za-z0-9]{12,26}(?![A-Za-z0-9])"),
    *_simple("tencent_key", "AKID", body=r"[A-Za-z0-9]{28,36}(?![A-Za-z0-9])"),
    *_simple("brave_key", "BSA", body=r"[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])"),
    *_simple("postman_key", "PMAT-", body=r"[A-Z0-9]{26}"),
    *_simple("adafruit_key", "aio_", body=r"[A-Za-z0-9]{28}(?![A-Za-z0-9])"),
    *_simple("cal_key", "cal_live_", body=r"[0-9a-f]{32}"),
    *_simple("clojars_token", "CLOJARS_", body=r"[0-9a-f]{60}"),
    *_simple("easypost_key", "EZAK", "EZTK", body=r"[A-Za-z0-9]{54}"),
    *_simple("kaggle_token", "KGAT_", body=r"[0-9a-f]{32}"),
    *_simple("cursor_key", "crsr_", body=r"[0-9a-f]{32,}"),
    *_simple("octopus_key", "API-", body=r"[A-Z0-9]{26,32}(?![A-Za-z0-9])"),
    *_simple("datadog_key", "ddapp_", "ddpat_", body=r"[A-Za-z0-9_]{30,}"),
    *_simple("mandrill_key", "md-", body=r"[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),
    *_simple("plaid_token", "access-sandbox-", "access-development-", "access-production-", body=r"[0-9a-f-]{36}"),
    *_simple("braintree_token", "access_token$", body=r"(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    *_simple("payment_key", "live_", "test_", body=r"[A-Za-z0-9]{30,40}" r"(?![A-Za-z0-9_])"),
    *_simple("woocommerce_key", "cs_", body=r"[0-9a-f]{40}(?![0-9A-Za-z])"),
    *_simple("telnyx_key", "KEY0", body=r"[0-9A-F]{31}_[A-Za-z0-9]{22}"),
    *_simple("snyk_token", "snyk_uat.", "snyk_sat.", body=r"[A-Za-z0-9_.-]{20,}"),
    *_simple(
        "packagist_token", *(f"packagist_{kind}_" for kind in ("uut", "ack", "out", "acs", "ort", "orv")),
        body=r"[A-Za-z0-9]{24,}"
    ),
    *_simple("yandex_token", "t1.", body=r"[A-Za-z0-9_-]{80,}\.[A-Za-z0-9_=-]{60,}"),
    *_simple("pubnub_key", "sec-c-", body=r"[A-Za-z0-9-]{36,}={0,2}"),
    *_simple("dbt_token", "dbtc_", "dbtu_", "dbts_", body=r"[A-Za-z0-9_-]{30,}"),
    *_simple("trello_token", "ATTA", body=r"[0-9a-fA-F]{64,}"),
    *_simple("wandb_key", "wandb_v1_", body=r"[A-Za-z0-9_]{30,}"),
    *_simple("google_key", "AQ.Ab8R", body=r"[A-Za-z0-9_-]{30,}"),
    *_simple("modal_token", "as-", body=r"[A-Za-z0-9]{22}(?![A-Za-z0-9_-])"),
    *_simple("daytona_key", "dtn_", body=r"[0-9a-f]{40,}"),
    *_simple("stytch_secret", "secret-live-", "secret-test-", body=r"[A-Za-z0-9_-]{24,}={0,2}"),
    *_simple("statsig_key", "secret-", body=r"[A-Za-z0-9]{40,}(?![A-Za-z0-9_-])"),
    *_simple("infisical_token", "st.", body=r"[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    *_simple("checkly_key", "cu_", body=r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    *_simple("axiom_token", "xaat-", "xapt-", body=r"[0-9a-f-]{36}"),
    *_simple("xata_key", "xau_", body=r"[A-Za-z0-9]{30,}"),
    *_simple("fauna_key", "fnA", body=r"[A-Za-z0-9_-]{36,40}(?![A-Za-z0-9_-])"),
    *_simple("imagekit_key", "private_", body=r"[A-Za-z0-9+/]{24,32}={1,2}"),
    *_simple("together_key", "tgp_v1_", body=r"[A-Za-z0-9_-]{40,}"),
    *_simple("cockroach_key", "CCDB1_", body=r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    *_simple("onepassword_key", "A3-", body=r"[A-Z0-9]{6}-(?:[A-Z0-9]{6}|[A-Z0-9]{5})(?:-[A-Z0-9]{5,6}){3,4}"),
    *_simple("swarm_token", "SWMTKN-1-", body=r"[0-9a-z]{40,}-[0-9a-z]{20,}"),
    *_simple("clickup_token", "pk_", body=r"[0-9]{6,10}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    *_simple("zapier_key", "sk-ak-", body=r"[A-Za-z0-9_-]{20,}"),
    *_simple("readme_key", "rdme_", body=r"[0-9a-z]{60,}"),
    *_simple("duffel_token", "duffel_live_", "duffel_test_", body=r"[A-Za-z0-9_=-]{40,}"),
    *_simple("frame_token", "fio-u-", body=r"[A-Za-z0-9_=-]{50,}"),
    *_simple("scalingo_token", "tk-us-", body=r"[A-Za-z0-9_-]{48}"),
    *_simple("secret_key", "sk_prod_", "sk_dev_", "sk_staging_", body=r"[A-Za-z0-9_]{24,}"),
    *_simple("anyscale_key", "esecret_", "aph0_", body=r"[A-Za-z0-9_]{24,}"),
    *_simple(
        "aws_session_token", "IQoJb3JpZ2luX2Vj", "FwoGZXIvYXdz", "FQoGZXIvYXdz", "AQoDYXdz",
        body=r"[A-Za-z0-9+/]{40,}={0,2}"
    ),
    *_simple("cloudflare_key", "v1.0-", body=r"[0-9a-f]{24}-[0-9a-f]{32,}"),
)  # fmt: skip
_BY_PREFIX = {prefix: list(group) for prefix, group in itertools.groupby(_SERVICES, lambda service: service.prefix)}
_INNER = ("k_live_", "k_test_")
"""Prefixes that come after a first letter (`sk_live_`, `rk_test_`); `pk_live_` begins what pages may show."""
_COUNT = regex(r"\{([1-9]\d*),\d*\}\Z")
_AHEAD = regex(r"\(\?![^()]*\)")
_BLOB = 24
_IN_BLOB = regex(rf"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9+/]{{{_BLOB}}}")
"""What stands before a prefix that long base64 has by chance."""
_LIKE_NAMES = ("live_", "test_", "fnA", "private_", "as-", "md-")
"""Prefixes that names of programs and classes have too."""
_NO_NAME = regex(r"(?=[^A-Z]*[A-Z])(?:[A-Za-z_-]*[0-9]+[A-Za-z]+){3}")
_BY_CHANCE = regex(r"[0-9]|[a-z][A-Z].*[a-z][A-Z].*[a-z][A-Z]|\A[A-Z]{16}\Z")
_PLACEHOLDER = regex(r"(?i)x{5}|\.{3}|your|EXAMPLE")

_SHAPES = (
    Shape("slack_webhook", "hooks.slack.com/", r"hooks\.slack\.com/",
        regex(r"(?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_]{20,}"), 8),
    Shape("teams_webhook", "webhook.office.com/", r"webhook\.office\.com/", regex(
        r"https?://[\w-]{1,64}\.webhook\.office\.com/webhookb2/[\w@-]{36,80}/[A-Za-z]{4,32}/" r"[\w/-]{32,120}" ),
        80),
    Shape("webhook", "/hooks/catch/", r"/hooks/catch/", regex(r"/hooks/catch/[0-9]{4,12}/[a-z0-9]{6,12}"), 0),
    Shape("teams_webhook", "office.com/webhook/", r"office\.com/webhook/", regex(
        r"https?://outlook\.office\.com/webhook/[\w@-]{36,80}/[A-Za-z]{4,32}/[\w/-]{32,120}"), 24),
    Shape("webhook", "/with/key/", r"/with/key/", regex(r"/with/key/[A-Za-z0-9_-]{20,50}(?![\w-])"), 0),
    Shape("webhook", "/bot/v2/hook/", r"/bot/v2/hook/", regex(r"/bot/v2/hook/[0-9a-f-]{36}"), 0),
    Shape("discord_webhook", "/webhooks/", r"/webhooks/[0-9]", regex(
        r"https?://[a-z.]{0,10}discord(?:app)?\.com/api(?:/v\d+)?/webhooks/[0-9]{15,20}/" r"[A-Za-z0-9_-]{20,}" ),
        48),
    Shape(
        "discord_webhook", "/webhooks/", r"/webhooks/[0-9]", regex(r"/webhooks/[0-9]{15,20}/[A-Za-z0-9_-]{20,}"), 0
    ),
    Shape("discord_token", ".", r"[A-Za-z0-9_-]{10}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{20}",
        regex(r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,44}"), 29),
    Shape("telegram_token", ":AA", r"[0-9]:AA[A-Za-z0-9]",
        regex(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{30,36}(?![A-Za-z0-9_-])"), 10),
    Shape("azure_client_secret", "Q~", r"[0-9]Q~",
        regex(r"(?<![A-Za-z0-9_~-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"), 4),
    Shape(
        "azure_key", "JQQJ99", r"JQQJ99", regex(r"(?<![A-Za-z0-9])[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{20,30}"), 60
    ),
    Shape("new_relic_key", "NRAL", r"[0-9a-f]NRAL", regex(r"(?<![A-Za-z0-9])[0-9a-f]{36}NRAL(?![A-Za-z0-9])"), 36),
    Shape("terraform_token", ".atlasv1.", r"\.atlasv1\.",
        regex(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"), 14),
    Shape("airtable_token", "pat", r"pat[A-Za-z0-9]{14}\.",
        regex(r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"), 0),
    Shape("mailchimp_key", "-us", r"[0-9a-f]{8}-us[0-9]",
        regex(r"(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])"), 32),
    Shape("mailgun_key", "-", r"[0-9a-f]{20}-[0-9a-f]{8}-[0-9a-f]{8}",
        regex(r"(?<![0-9A-Za-z-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-])"), 32),
    Shape("salesforce_token", "!AQ", r"!AQ[A-Za-z0-9._]{12}",
        regex(r"(?<![A-Za-z0-9])00D[A-Za-z0-9]{12,15}!AQ[A-Za-z0-9._]{60,}"), 18),
    Shape("fcm_key", ":APA91b", r":APA91b",
        regex(r"(?<![A-Za-z0-9_-])AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}"), 11),
    Shape("ably_key", ".", r"\.[A-Za-z0-9_-]{6}:[A-Za-z0-9_-]{12}", regex(
        r"(?<![A-Za-z0-9._-])[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}:" r"[A-Za-z0-9_-]{40,44}(?![\w-])" ), 6),
    Shape("asana_token", "/", r"[12]/[0-9]{15}",
        regex(r"(?<![\w/.])[12]/[0-9]{15,17}(?:/[0-9]{15,17})?:[0-9a-f]{32}(?![0-9A-Za-z])"), 1),
    Shape("deepl_key", ":fx", r"[0-9a-f]{8}:fx",
        regex(r"(?<![0-9a-f-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:fx(?![\w])"), 36),
    Shape("apollo_key", "service:", r"service:[A-Za-z0-9_-]+:[A-Za-z0-9]",
        regex(r"service:[\w-]{2,64}:[A-Za-z0-9_-]{22}(?![\w-])"), 0),
    Shape("twilio_key", "SK", r"SK[0-9a-f]{6}", regex(r"(?<![0-9A-Za-z])SK[0-9a-f]{32}(?![0-9A-Za-z])"), 0),
)  # fmt: skip
_COMMON = {
    ".": regex(r"\.(?=[A-Za-z0-9_-]{6}[.:])"),
    "-": regex(r"(?<=[0-9a-f])-(?=[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-]))"),
    "/": regex(r"(?<=[12])/(?=[0-9]{15})"),
}
"""Literals that stand everywhere, with what stands around them in a key."""


def _keys(prefix: str, bodies: list[tuple[str, re.Pattern[str]]], view: View) -> Iterator[Span]:
    """Keys that begin as those of a service do."""
    done = 0
    for place in view.places(prefix, lower=False):
        before = view.text[max(0, place - _BLOB) : place]
        touched = before[-1:] == "p" if prefix in _INNER else before[-1:].isalnum()
        if place < done or touched or _IN_BLOB.fullmatch(before):
            continue
        for rule, body in bodies:
            match = body.match(view.text, place + len(prefix))
            if not match:
                continue
            done = match.end()
            if prefix in _LIKE_NAMES and not _NO_NAME.match(match.group()):
                continue
            if _BY_CHANCE.search(match.group()) and not _PLACEHOLDER.search(match.group()):
                yield view.span(place - (prefix in _INNER), match.end(), rule, 3)


def _shaped(shape: Shape, view: View) -> Iterator[Span]:
    """Keys that have the mark of a service in them."""
    text = view.text
    if shape.literal in _COMMON:
        places: Iterable[int] = (match.start() for match in _COMMON[shape.literal].finditer(text))
    else:
        places = view.places(shape.literal, lower=False)
    for place in places:
        for start in range(max(0, place - shape.before), place + 1):
            match = shape.form.match(text, start)
            if match and match.end() > place:
                yield view.span(*match.span(), shape.rule, 3)
                break


def _sign(service: Service) -> str:
    """The least that a body has, for the sifting of whole columns."""
    return _COUNT.sub(r"{\1}", _AHEAD.sub("", service.body))


def _edge(prefix: str) -> str:
    return "" if prefix in _INNER else "(?:^|[^A-Za-z0-9])"


KINDS = (
    *(
        Kind(
            f"service {prefix}",
            f"{_edge(prefix)}{re.escape(prefix)}(?:{'|'.join(dict.fromkeys(map(_sign, services)))})",
            functools.partial(_keys, prefix, [(service.rule, regex(service.body)) for service in services]),
        )
        for prefix, services in _BY_PREFIX.items()
    ),
    *(Kind(f"shape {place}", shape.sign, functools.partial(_shaped, shape)) for place, shape in enumerate(_SHAPES)),
)
