//! Words of the rules. Stems are whole lower-case words without accents; the languages (English,
//! German, French, Spanish, Italian, Portuguese) share one list each.

/// Verbs that set instructions aside.
pub(super) const OVERRIDE: &[&str] = &[
    "ignore", "ignoring", "disregard", "disregarding", "forget", "override", "overrule",
    "overriding", "bypass", "discard", "neglect", "replace", "abandon", "supersede", "dismiss",
    "unlearn", "circumvent", "erase", "ignoriere", "ignoriert", "ignorieren", "ignorier",
    "vergiss", "vergesse", "vergessen", "vergesst", "missachte", "missachten", "verwirf",
    "ubergehe", "uberschreibe", "umgehe", "ignorez", "ignorer", "ignores", "oublie", "oubliez",
    "oublier", "negligez", "neglige", "contourne", "contournez", "ignora", "ignorar", "ignorad",
    "ignoren", "olvida", "olvide", "olvidar", "olviden", "omite", "descarta", "descarte",
    "anula", "ignori", "ignorate", "ignorare", "dimentica", "dimenticare", "dimentichi",
    "dimenticate", "tralascia", "scarta", "trascura", "esqueca", "esquece", "esquecer",
    "desconsidere", "desconsidera", "despreze", "ignorem",
];

/// What instructions are called.
pub(super) const INSTRUCTIONS: &[&str] = &[
    "instructions", "prompt", "prompts", "guidelines", "guardrails", "directives", "safeguards",
    "restrictions", "programming", "training", "anweisungen", "anweisung", "vorgaben",
    "instruktionen", "richtlinien", "beschrankungen", "einschrankungen", "consignes",
    "instrucciones", "indicaciones", "restricciones", "directrices", "istruzioni",
    "indicazioni", "restrizioni", "direttive", "instrucoes", "orientacoes", "restricoes",
    "diretrizes",
];

/// Objects that are common in logs and need a qualifier.
pub(super) const WEAK_OBJECTS: &[&str] = &[
    "instruction", "rules", "rule", "context", "policy", "policies", "constraints", "task",
    "tasks", "messages", "message", "text", "everything", "commands", "command", "orders",
    "order", "conversation", "questions", "question", "limitations", "filters", "anything",
    "what", "regeln", "regel", "alles", "befehle", "aufgabe", "aufgaben", "kontext", "regles",
    "regle", "tout", "texte", "ordres", "tache", "contexte", "reglas", "regla", "todo", "texto",
    "ordenes", "tarea", "contexto", "regole", "regola", "tutto", "testo", "ordini", "compito",
    "contesto", "regras", "regra", "tudo", "ordens", "tarefa",
];

/// What makes a weak object that of the reader.
pub(super) const QUALIFIERS: &[&str] = &[
    "previous", "previously", "prior", "above", "earlier", "preceding", "before", "your",
    "system", "safety", "initial", "original", "foregoing", "everything", "told", "given",
    "existing", "vorherigen", "vorherige", "vorigen", "bisherigen", "bisherige", "obigen",
    "fruheren", "deine", "deinen", "ihre", "ihren", "gesagt", "oben", "alles", "precedentes",
    "precedente", "anterieures", "tes", "vos", "dessus", "tout", "dit", "initiales",
    "anteriores", "anterior", "previas", "previa", "tus", "sus", "todo", "dicho", "arriba",
    "iniciales", "precedenti", "tue", "tuoi", "vostre", "sopra", "tutto", "detto", "suas",
    "seus", "teus", "tudo", "acima", "dito",
];

/// How the reader is addressed.
pub(super) const ADDRESSEES: &[&str] = &[
    "assistant", "ai", "llm", "chatbot", "chatgpt", "copilot", "gpt", "claude", "gemini",
    "sentinel", "ki", "ia", "assistent", "assistente", "asistente",
];

/// Orders that change a system.
pub(super) const ORDERS: &[&str] = &[
    "restart", "rollback", "revert", "reboot", "scale", "delete", "drop", "kill", "run",
    "execute", "apply", "terminate", "disable", "uninstall", "install", "stop", "drain", "roll",
    "kubectl", "systemctl", "curl", "downgrade", "upgrade", "shutdown", "wipe", "purge",
    "truncate", "redeploy", "deploy", "neustarten", "starte", "losche", "fuhre", "redemarre",
    "redemarrez", "supprime", "supprimez", "executez", "reinicia", "reinicie", "elimina",
    "elimine", "ejecuta", "ejecute", "riavvia", "riavviare", "esegui", "exclua",
];

/// Words that push.
pub(super) const URGE: &[&str] = &[
    "immediately", "now", "asap", "urgently", "must", "required", "right", "instantly",
    "sofort", "umgehend", "immediatement", "inmediatamente", "immediatamente", "imediatamente",
    "subito",
];

/// Claims of approval.
pub(super) const APPROVED: &[&str] = &[
    "approved", "preapproved", "pre-approved", "authorized", "authorised", "preauthorized",
    "pre-authorized", "cleared", "signed-off", "sanctioned", "genehmigt", "freigegeben",
    "autorisiert", "approuve", "autorise", "aprobado", "autorizado", "approvato", "autorizzato",
    "aprovado",
];

/// Verbs of telling.
pub(super) const TELL: &[&str] = &[
    "tell", "mention", "report", "reveal", "disclose", "inform", "alert", "notify", "include",
    "show", "say", "escalate", "erwahne", "erwahnen", "sage", "sagen", "melde", "informiere",
    "mentionne", "mentionnez", "dites", "dis", "informe", "informez", "menciones", "menciona",
    "digas", "diga", "informes", "dire", "menziona", "informare", "mencione",
];

/// Whom not to tell.
pub(super) const AUDIENCE: &[&str] = &[
    "user", "users", "human", "humans", "operator", "operators", "anyone", "anybody", "nobody",
    "oncall", "on-call", "admin", "engineer", "engineers", "this", "it", "benutzer", "nutzer",
    "niemandem", "personne", "utilisateur", "usuario", "nadie", "utente", "nessuno", "ninguem",
];

/// Verbs that send data away.
pub(super) const SEND: &[&str] = &[
    "send", "post", "upload", "forward", "exfiltrate", "email", "mail", "transmit", "leak",
    "submit", "copy", "transfer", "share", "publish", "sende", "schicke", "leite", "ubermittle",
    "envoie", "envoyez", "transmets", "transmettez", "envia", "envie", "manda", "reenvia",
    "invia", "inoltra", "trasmetti", "encaminhe",
];

/// Data worth stealing.
pub(super) const LOOT: &[&str] = &[
    "secret", "secrets", "credential", "credentials", "password", "passwords", "token",
    "tokens", "keys", "environment", "conversation", "prompt", "contents", "evidence", "env",
    "history", "files", "data", "list", "records", "emails", "daten", "donnees", "datos",
    "dati", "dados", "zugangsdaten", "passworter", "geheimnisse", "motsdepasse", "identifiants",
    "contrasenas", "credenciales", "secretos", "credenziali", "segreti", "senhas",
    "credenciais", "segredos",
];

/// What a reader must keep.
pub(super) const SECRETS: &[&str] = &[
    "secret", "secrets", "password", "passwords", "passcode", "passphrase", "credential",
    "credentials", "key", "keys", "instructions", "prompt", "confidential", "hidden", "code",
    "passwort", "passworter", "kennwort", "geheimnis", "geheimnisse", "geheime", "schlussel",
    "passe", "cle", "mdp", "contrasena", "contrasenas", "clave", "secreto", "secretos",
    "segreto", "segreti", "chiave", "parola", "segredo", "segredos", "chave", "senha", "senhas",
    "codigo", "codice",
];

/// Verbs that give a secret away.
pub(super) const REVEAL: &[&str] = &[
    "reveal", "disclose", "tell", "give", "show", "print", "share", "output", "repeat", "say",
    "spell", "write", "display", "expose", "leak", "hint", "divulge", "provide", "encode",
    "translate", "send", "recite", "list", "state", "describe", "summarize", "confirm",
    "verify", "verrate", "verraten", "sag", "sage", "sagen", "gib", "geben", "zeige", "zeigen",
    "nenne", "nennen", "teile", "teilen", "ubersetze", "buchstabiere", "wiederhole", "schreib",
    "schreibe", "verrat", "bestatige", "bestatigen", "confirmez", "confirmer", "revele",
    "revelez", "dis", "dites", "donne", "donnez", "montre", "montrez", "partage", "partager",
    "partagez", "repete", "repetez", "traduis", "ecris", "donner", "dire", "reveler", "montrer",
    "confirma", "confirme", "confirmes", "confirmar", "revela", "dime", "diga", "digame", "da",
    "dame", "deme", "muestra", "muestrame", "comparte", "compartir", "repite", "traduce",
    "escribe", "decir", "dar", "conferma", "confermare", "confermi", "rivela", "rivelami",
    "dimmi", "dammi", "dica", "mostra", "mostrami", "condividi", "condividere", "ripeti",
    "traduci", "scrivi", "dare", "fornisci", "mostre", "compartilhe", "repita", "traduza",
    "escreva", "dizer", "compartilhar", "forneca",
];

/// Verbs that fix an answer.
pub(super) const ANSWER: &[&str] = &[
    "conclude", "classify", "mark", "report", "respond", "answer", "output", "say", "state",
    "declare", "treat", "set", "blame", "attribute", "choose", "select", "pick", "return",
    "reply", "print", "begin", "end", "start", "include", "finish", "antworte", "antworten",
    "schliesse", "bewerte", "repond", "reponds", "repondez", "conclus", "responde", "responda",
    "concluye", "rispondi", "concludi", "conclua",
];

/// What an answer is made of.
pub(super) const VERDICT: &[&str] = &[
    "verdict", "diagnosis", "confidence", "hypothesis", "conclusion", "benign", "resolved",
    "postmortem", "rca", "summary", "urteil", "diagnose", "verdicto", "veredicto",
    "diagnostico", "diagnosi", "conclusao",
];

/// Words after which a verb is an order.
pub(super) const LEAD: &[&str] = &[
    "please", "must", "should", "always", "now", "then", "just", "only", "simply", "to", "and",
    "instead", "kindly", "will", "shall", "you", "bitte", "veuillez", "favor", "jetzt", "immer",
    "sondern", "maintenant", "toujours", "ahora", "siempre", "solo", "adesso", "sempre",
    "agora", "et", "und", "y", "e", "ed",
];

/// The reader as a person.
pub(super) const YOU: &[&str] = &[
    "you", "your", "yours", "yourself", "youre", "u", "du", "dir", "dich", "dein", "deine",
    "deinen", "deinem", "deiner", "ihr", "euch", "ihre", "ihnen", "sie", "tu", "te", "toi",
    "ton", "ta", "tes", "vous", "votre", "vos", "usted", "ustedes", "tus", "su", "le", "lei",
    "ti", "tuo", "tua", "tuoi", "voce", "voces", "seu", "sua",
];

/// The one who asks.
pub(super) const ME: &[&str] = &[
    "me", "my", "mine", "us", "mir", "mich", "mein", "meine", "meinen", "meinem", "uns", "moi",
    "mon", "ma", "mes", "nous", "mi", "mis", "mio", "conmigo", "nos", "mia", "miei", "mie",
    "meu", "minha", "mim",
];

/// The one who speaks.
pub(super) const I: &[&str] = &[
    "i", "i'm", "i'd", "i'll", "ich", "je", "j'ai", "io", "eu", "yo",
];

/// Words of courtesy.
pub(super) const PLEASE: &[&str] = &[
    "please", "pls", "plz", "kindly", "bitte", "veuillez", "svp", "favor", "prego",
    "gentilmente",
];

/// Words before an order that change nothing.
pub(super) const FILLERS: &[&str] = &[
    "now", "then", "also", "next", "first", "finally", "instead", "just", "simply", "only",
    "hey", "hi", "hello", "ok", "okay", "and", "so", "but", "well", "great", "thanks", "ai",
    "assistant", "bot", "task", "todo", "important", "note", "dear", "jetzt", "dann", "danach",
    "zuerst", "stattdessen", "hallo", "aber", "maintenant", "ensuite", "puis", "ahora", "luego",
    "primero", "despues", "hola", "ora", "poi", "invece", "ciao", "agora", "entao", "depois",
    "ola", "por", "s", "il", "plait", "vous",
];

/// Words after an order that name its object.
pub(super) const DETERMINERS: &[&str] = &[
    "the", "a", "an", "my", "me", "us", "our", "your", "this", "that", "these", "those", "all",
    "any", "every", "each", "his", "her", "their", "some", "it", "its", "following", "of",
    "about", "how", "why", "what", "whether", "if", "for", "with", "into", "on", "to", "der",
    "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "mir", "uns", "alle", "diese",
    "dieses", "diesen", "uber", "wie", "was", "mit", "fur", "le", "la", "les", "un", "une",
    "des", "moi", "mon", "ma", "mes", "ce", "cette", "ces", "tous", "comment", "sur", "pour",
    "avec", "el", "los", "las", "una", "unos", "unas", "mi", "mis", "este", "esta", "estos",
    "estas", "todos", "como", "sobre", "para", "con", "que", "il", "lo", "gli", "i", "uno",
    "mio", "mia", "questo", "questa", "questi", "tutti", "come", "su", "per", "o", "os", "as",
    "um", "uma", "meu", "minha", "isso", "todas", "no", "na", "em",
];

/// Words that oblige.
pub(super) const DUTY: &[&str] = &[
    "must", "should", "shall", "need", "needs", "have", "has", "will", "want", "wants", "would",
    "expect", "required", "musst", "sollst", "sollten", "mussen", "dois", "devez", "debes",
    "debe", "tienes", "devi", "deve", "dovete", "precisa",
];

/// Words that open a question.
pub(super) const QUESTION: &[&str] = &[
    "what", "what's", "whats", "how", "how's", "who", "who's", "whom", "whose", "why", "when",
    "where", "where's", "which", "can", "could", "would", "will", "do", "does", "did", "is",
    "are", "should", "may", "shall", "was", "wie", "wer", "wen", "wem", "warum", "wieso",
    "weshalb", "wann", "wo", "welche", "welcher", "welches", "kannst", "konntest", "konnen",
    "konnten", "wurdest", "gibt", "ist", "sind", "hat", "quoi", "que", "quel", "quelle",
    "quels", "quelles", "comment", "qui", "pourquoi", "quand", "ou", "combien", "peux",
    "pouvez", "pourriez", "pourrais", "est", "cual", "cuales", "como", "quien", "quienes",
    "donde", "cuando", "cuanto", "cuantos", "puedes", "podrias", "puede", "podria", "es",
    "cosa", "che", "quale", "quali", "come", "chi", "perche", "quando", "dove", "quanto",
    "puoi", "potresti", "puo", "potrebbe", "qual", "quem", "onde", "por", "voce", "pode",
    "poderia", "quantos",
];

/// Words that follow a question word.
pub(super) const AUXILIARY: &[&str] = &[
    "is", "are", "was", "were", "do", "does", "did", "can", "could", "should", "would", "will",
    "have", "has", "am", "i", "you", "the", "to", "if", "much", "many", "ist", "sind", "war",
    "kann", "sollte", "wurde", "macht", "funktioniert", "est", "sont", "peut", "sert", "es",
    "son", "esta", "puede", "e", "sono", "ce", "puo", "sao", "pode", "posso", "faco",
];

/// Beginnings of a request.
pub(super) const REQUEST_HEADS: &[&str] = &[
    "can you", "could you", "would you", "will you", "can i", "could i", "may i", "should i",
    "do you", "how do i", "how can i", "how to", "what is", "what are", "what's the", "who is",
    "kannst du", "konntest du", "konnen sie", "konnten sie", "wie kann", "was ist", "peux tu",
    "pouvez vous", "pourriez vous", "pourrais tu", "est ce que", "comment puis", "qu'est ce",
    "puedes", "podrias", "puede usted", "podria", "como puedo", "cual es", "que es", "puoi",
    "potresti", "puo", "potrebbe", "come posso", "qual e", "cos'e", "voce pode", "pode me",
    "poderia", "voce poderia", "como posso",
];

/// Work with words and things that no program asks of its reader.
pub(super) const WORK: &[&str] = &[
    "write", "tell", "give", "explain", "describe", "summarize", "summarise", "translate",
    "list", "create", "generate", "provide", "analyze", "analyse", "imagine", "act", "pretend",
    "answer", "compose", "recommend", "suggest", "draft", "compare", "discuss", "repeat",
    "print", "show", "reveal", "output", "send", "forward", "delete", "remove", "share",
    "review", "identify", "propose", "calculate", "compute", "convert", "rewrite", "paraphrase",
    "outline", "design", "develop", "formulate", "prepare", "plan", "schedule", "book", "buy",
    "order", "pay", "transfer", "find", "search", "summon", "invite", "reserve", "play", "sing",
    "teach", "help", "assist", "advise", "evaluate", "assess", "examine", "predict", "simulate",
    "utilize", "utilise", "employ", "adopt", "incorporate", "integrate", "leverage", "embed",
    "insert", "inject", "implement", "modify", "alter", "manipulate", "access", "retrieve",
    "extract", "obtain", "copy", "upload", "post", "publish", "email", "invoke", "call",
    "execute", "bypass", "grant", "transform", "craft", "build", "make", "do", "let", "respond",
    "reply", "continue", "complete", "finish", "begin", "conclude", "append", "augment",
    "blend", "combine", "merge", "fuse", "attach", "collect", "gather", "scramble", "group",
    "quote", "cite", "elaborate", "brainstorm", "solve", "prove", "decode", "encode", "decrypt",
    "encrypt", "reverse", "spell", "recite", "sort", "rank", "classify", "categorize", "label",
    "mention", "recall", "remember", "assume", "suppose", "think", "consider", "pick", "choose",
    "select", "name", "define", "interpret", "proofread", "edit", "correct", "improve",
    "rephrase", "expand", "shorten", "reformat", "render", "produce", "deliver", "expose",
    "disclose", "hide", "conceal", "spread", "promote", "advertise", "endorse", "emphasize",
    "highlight", "refine", "enhance", "fetch", "download", "schreibe", "schreib", "sage", "sag",
    "gib", "erklare", "beschreibe", "ubersetze", "liste", "erstelle", "erzeuge", "generiere",
    "nenne", "analysiere", "fasse", "stelle", "antworte", "verfasse", "empfiehl", "vergleiche",
    "wiederhole", "zeige", "zeig", "sende", "schicke", "losche", "entferne", "teile",
    "berechne", "plane", "buche", "kaufe", "finde", "suche", "hilf", "sammle", "verwende",
    "entwirf", "erfinde", "erzahle", "spiele", "stell", "tu", "mach", "mache", "gebe", "geben",
    "sie", "rate", "verrate", "agiere", "ecris", "ecrivez", "dis", "dites", "donne", "donnez",
    "explique", "expliquez", "decris", "decrivez", "resume", "resumez", "traduis", "traduisez",
    "cree", "creez", "genere", "generez", "fournis", "fournissez", "analysez", "imaginez",
    "reponds", "repondez", "redige", "redigez", "recommande", "repete", "repetez", "montre",
    "montrez", "envoie", "envoyez", "rassemble", "collecte", "ajoute", "supprime", "supprimez",
    "partage", "calcule", "planifie", "achete", "trouve", "cherche", "aide", "aidez", "raconte",
    "racontez", "joue", "agis", "fais", "faites", "escribe", "escriba", "escribeme", "dime",
    "digame", "da", "dame", "explica", "traduce", "traduzca", "lista", "crea", "genera",
    "proporciona", "analiza", "imagina", "responde", "redacta", "recomienda", "propone",
    "compara", "repite", "muestra", "muestrame", "envia", "envie", "elimina", "borra",
    "comparte", "calcula", "planifica", "reserva", "compra", "encuentra", "busca", "ayuda",
    "ayudame", "recopila", "reune", "anade", "cuenta", "cuentame", "actua", "haz", "haga",
    "usa", "finge", "scrivi", "scrivimi", "dimmi", "dammi", "spiega", "spiegami", "descrivi",
    "riassumi", "traduci", "elenca", "fornisci", "analizza", "immagina", "rispondi", "componi",
    "consiglia", "proponi", "confronta", "ripeti", "mostra", "mostrami", "invia", "cancella",
    "condividi", "calcola", "pianifica", "prenota", "trova", "cerca", "aiuta", "aiutami",
    "raccogli", "aggiungi", "racconta", "raccontami", "agisci", "fai", "fingi", "escreva",
    "diga", "conte", "descreva", "resuma", "traduza", "crie", "gere", "forneca", "analise",
    "responda", "componha", "recomende", "sugira", "repita", "mostre", "exclua", "apague",
    "compartilhe", "planeje", "compre", "encontre", "procure", "reuna", "adicione", "ajude",
    "aja", "faca", "finja",
];

/// Verbs of the advice that programs print.
pub(super) const ADVICE: &[&str] = &[
    "check", "see", "use", "run", "try", "set", "ensure", "verify", "refer", "contact",
    "increase", "install", "upgrade", "update", "specify", "enable", "disable", "configure",
    "restart", "retry", "visit", "note", "wait", "avoid", "read", "consult", "ask", "report",
    "file", "submit", "make", "log", "login", "enter", "add", "fix", "migrate", "switch",
    "change", "open", "close", "rerun", "rebuild", "reinstall", "reboot", "reconnect", "reload",
    "refresh", "confirm", "consider", "be", "do", "stop", "start", "choose", "select", "pass",
    "define", "correct", "remove", "provide", "wrap", "stay", "allow", "adjust", "reduce",
    "investigate", "monitor", "inspect", "review", "keep", "move", "replace", "rename",
    "resolve", "validate", "click", "press", "type", "register", "subscribe", "supply", "clear",
    "free", "prufe", "prufen", "verwenden", "siehe", "starten", "warten", "versuchen",
    "uberprufen", "kontaktieren", "geben", "verifier", "verifiez", "utilisez", "consultez",
    "reessayez", "installez", "verifique", "consulte", "intente", "contacte", "espere",
    "instale", "verificare", "riprovare", "verifica", "riprova", "consulta", "contatta",
    "aguarde", "tente",
];

/// What the reader makes.
pub(super) const OUTPUT: &[&str] = &[
    "answer", "answers", "response", "responses", "reply", "replies", "solution",
    "implementation", "output", "codebase", "summary", "report", "antwort", "antworten",
    "reponse", "reponses", "respuesta", "respuestas", "risposta", "risposte", "resposta",
    "respostas",
];

/// What was said before, as an object of its own.
pub(super) const BEFORE: &[&str] = &[
    "above", "previous", "foregoing", "prior", "preceding", "obige", "vorherige", "precedent",
    "precedents", "dessus", "anterior", "acima", "precedente", "precedenti", "sopra", "arriba",
];

/// Words that join sentences.
pub(super) const AND: &[&str] = &[
    "and", "then", "instead", "but", "und", "dann", "et", "puis", "y", "luego", "e", "ed",
    "poi", "depois",
];

/// Words behind a noun that tell of it.
pub(super) const TOLD: &[&str] = &[
    "is", "was", "are", "were", "has", "had", "took", "takes", "failed", "error", "errors",
    "ok", "done", "not",
];

/// Roles that a reader is to take.
pub(super) const ROLE: &[&str] = &[
    "admin", "administrator", "root", "unrestricted", "mode", "operator", "restrictions",
    "jailbroken", "dan", "expert", "autonomous", "assistant", "ai", "model", "bot", "character",
    "persona", "role", "hacker", "evil", "rules", "limits", "limitations", "filter", "filters",
    "ethics", "anything", "god", "developer", "uncensored", "free", "terminal", "linux",
    "interpreter", "poet", "pirate", "grandmother", "grandma", "teacher", "actor", "story",
    "game", "king", "president", "robot", "rolle", "regeln", "einschrankungen", "ki", "modell",
    "charakter", "personnage", "regles", "modele", "rol", "personaje", "reglas", "modelo",
    "ruolo", "personaggio", "regole", "modello", "papel", "personagem", "regras",
];

/// Phrases of somebody who wants something.
pub(super) const WISHES: &[&str] = &[
    "i want you", "i need you", "i would like", "i'd like you", "i'd like to", "i want to know",
    "i want to", "i need to", "i need a", "i need the", "i need help", "i am your", "i'm your",
    "your task", "your job", "your goal", "your mission", "your new", "your role", "tell me",
    "give me", "show me", "help me", "let me know", "let's play", "let us play", "teach me",
    "send me", "write me", "remind me", "provide me", "grant me", "allow me", "for me please",
    "you will now", "we are going to", "you are going to", "ich mochte", "ich will",
    "ich brauche", "sag mir", "sage mir", "gib mir", "zeig mir", "zeige mir", "hilf mir",
    "erzahl mir", "verrate mir", "deine aufgabe", "je veux", "je voudrais", "j'aimerais",
    "j'ai besoin", "dis moi", "donne moi", "montre moi", "aide moi", "dites moi", "donnez moi",
    "ta tache", "votre tache", "quiero que", "quiero saber", "necesito", "me gustaria", "dime",
    "dame", "ayudame", "tu tarea", "voglio che", "voglio", "vorrei", "ho bisogno", "dimmi",
    "dammi", "aiutami", "il tuo compito", "quero que", "quero", "preciso", "gostaria",
    "me diga", "me de", "me ajude", "sua tarefa",
];

/// Addressees of two words.
pub(super) const ADDRESSEE_PAIRS: &[(&str, &str)] = &[
    ("language", "model"),
    ("sre", "agent"),
    ("sre", "bot"),
    ("remediation", "agent"),
    ("investigation", "agent"),
    ("incident", "agent"),
    ("automation", "agent"),
    ("autonomous", "agent"),
    ("analysis", "agent"),
    ("responding", "agent"),
    ("ai", "agent"),
    ("ai", "model"),
];

/// The same in two words.
pub(super) const VERDICT_PAIRS: &[(&str, &str)] = &[
    ("root", "cause"),
    ("false", "positive"),
    ("no", "action"),
    ("false", "alarm"),
    ("final", "answer"),
    ("not", "investigate"),
];

/// True for a verb that orders, sets aside, tells or answers: it is never shown of a text slot.
pub(super) fn is_action(word: &str) -> bool {
    [OVERRIDE, ORDERS, TELL, SEND, ANSWER, APPROVED, URGE, REVEAL]
        .iter()
        .any(|list| list.contains(&word))
}
