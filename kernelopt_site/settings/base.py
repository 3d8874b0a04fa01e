"""Settings read from the environment through ``kernelopt_site.env``; no logic beyond that."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network

from csp.constants import NONE, SELF

from kernelopt_site import env
from kernelopt_site.settings import database

BASE_DIR = env.REPOSITORY
VAR_DIR = env.var_dir()
VAR_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY = env.secret_key()
SECRET_KEY_FALLBACKS = env.secret_key_fallbacks()
DEBUG = env.debug()
ALLOWED_HOSTS = env.allowed_hosts()
CSRF_TRUSTED_ORIGINS = env.trusted_origins()

DEMO = env.demo()
SELF_REVIEW = env.self_review()
PUBLIC_BOARDS = env.public_boards()
REAUTHENTICATION_SECONDS = 15 * 60
CANARY_EVERY = env.canary_every()
ENDPOINTS_PATH = env.endpoints_path()
REQUIRED_ISOLATION = 2  # below it nothing is promoted (DESIGN section 6)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "axes",
    "apps.core",
    "apps.teams",
    "apps.audit",
    "apps.stream",
    "apps.kernels",
    "apps.campaigns",
    "apps.reviews",
    "apps.leaderboards",
    "apps.imports",
    "apps.bridge",
    "apps.bridge.mcp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "apps.core.charset.Utf8Alone",  # before anything reads a field
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "kernelopt_site.urls"
ASGI_APPLICATION = "kernelopt_site.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": database.postgres(env.database_url()) if env.database_url() else database.sqlite(env.sqlite_path())
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "teams.User"
LOGIN_URL = "/accounts/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/sign-in/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Strict"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = any(origin.startswith("https:") for origin in CSRF_TRUSTED_ORIGINS)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SESSION_COOKIE_SECURE else None

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PROXIES = [ip_network(proxy) for proxy in env.proxies()]
SIGN_IN_TRIES_IN_ALL = env.sign_in_tries_in_all()
AXES_HANDLER = "apps.teams.throttle.Throttle"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_FAILURE_LIMIT = env.sign_in_tries()
AXES_COOLOFF_TIME = timedelta(minutes=env.sign_in_minutes())
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # who keeps trying is not kept out for ever
AXES_RESET_ON_SUCCESS = True
AXES_USERNAME_FORM_FIELD = "username"
AXES_USERNAME_CALLABLE = "apps.teams.throttle.counted_name"
AXES_CLIENT_IP_CALLABLE = "apps.teams.addresses.client_address"
AXES_WHITELIST_CALLABLE = "apps.teams.throttle.nothing_to_guess"
AXES_DISABLE_ACCESS_LOG = True  # where people signed in from is not kept
AXES_ENABLE_ADMIN = False  # ours shows rows and changes none
AXES_VERBOSE = False

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "manifest-src": [SELF],
    }
}

CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = VAR_DIR / "staticfiles"
STATIC_ROOT.mkdir(exist_ok=True)
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {"django.server": {"level": "WARNING"}, "daphne": {"level": "WARNING"}, "axes": {"level": "ERROR"}},
}
