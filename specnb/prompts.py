"""The prompts of the notebooks, by kind.

Chosen so that the embedded model answers them greedily without falling into a repetition loop
within 128 tokens. It has 135 million parameters: it copies well, translates badly and invents freely.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """kind: what the reader picks from. title: a few words for a menu. text: the message as sent."""

    kind: str
    title: str
    text: str


PROMPTS: dict[str, Prompt] = {
    prompt.kind: prompt
    for prompt in (
        Prompt(
            "code",
            "bubble sort, explained",
            "Write a Python function that sorts a list of numbers with bubble sort, then explain it step by step.",
        ),
        Prompt(
            "rewrite",
            "correct the spelling",
            "Copy the following text and correct its spelling mistakes. Change nothing else.\n"
            "\n"
            "The libary opens at nine and closes at six. Books can be borowed for three weeks, and most of them "
            "can be renewed twice. If a book is late, the libary sends a letter and asks for a small fee. "
            "Children can visit the libary on Saturday mornings, when a story is read aloud in the garden.",
        ),
        Prompt(
            "extract",
            "names and dates",
            "Extract the names and dates from this text as a list. Quote the sentence of each.\n"
            "\n"
            "The lighthouse was finished in March 1871 by Henrik Lund. A storm broke the great lens in October "
            "1903. Clara Holm replaced the lens in May 1904.",
        ),
        Prompt(
            "translate",
            "English to Spanish",
            "Translate this text to Spanish.\n"
            "\n"
            "The market is open every day from seven in the morning. You can buy fresh bread, cheese and fruit "
            "there. On Sundays there is music in the square.",
        ),
        Prompt(
            "story",
            "the lighthouse keeper",
            "Write a short story about a lighthouse keeper who finds a message in a bottle.",
        ),
        Prompt(
            "chat",
            "weather and climate",
            "What is the difference between weather and climate? Answer in a few sentences.",
        ),
    )
}
"""Kind -> prompt, in the order a menu shows them."""

HELD_OUT: tuple[Prompt, ...] = tuple(
    Prompt(kind, title, text)
    for kind, title, text in (
        ("chat", "two kinds of bread", "What is the difference between sourdough and ordinary bread?"),
        ("chat", "moving house", "I am moving to a new city next month. What should I do first?"),
        ("chat", "why the sky is blue", "Why is the sky blue during the day and red in the evening?"),
        ("chat", "sleep", "How can I fall asleep faster when I have to get up early?"),
        (
            "code",
            "hash table",
            "Write a short technical explanation of how a hash table handles collisions, then give a Python "
            "implementation.",
        ),
        ("code", "prime numbers", "Write a Python function that returns all prime numbers below n, with a docstring."),
        ("code", "a stack class", "Write a JavaScript class for a stack with push, pop and size, then explain it."),
        (
            "code",
            "add comments",
            "Add a comment to every line of this code:\n"
            "\n"
            "def mean(values):\n"
            "    total = 0\n"
            "    for value in values:\n"
            "        total += value\n"
            "    return total / len(values)",
        ),
        (
            "rewrite",
            "formal tone",
            "Rewrite this message in a formal tone. Keep every fact.\n"
            "\n"
            "Hi Tom, the printer on the second floor is broken again. I called the repair people and they will come "
            "on Thursday morning. Until then everybody can use the one next to the kitchen.",
        ),
        (
            "rewrite",
            "past tense",
            "Copy this text, but put every sentence in the past tense.\n"
            "\n"
            "The ferry leaves the harbour at eight. It carries forty cars and two hundred people. The crossing takes "
            "three hours, and in winter it often takes four. On board there is a small kitchen that sells soup.",
        ),
        (
            "rewrite",
            "correct the grammar",
            "Correct the grammar of this text and change nothing else.\n"
            "\n"
            "My brother work in a garden centre since two year. He like the plants more than the customer. Every "
            "morning he water the tomatoes and talk to them, and in the evening he bring some of them home.",
        ),
        (
            "rewrite",
            "rename a variable",
            "Repeat this code exactly, but rename the variable x to price.\n"
            "\n"
            "def discount(x, rate):\n"
            "    if rate < 0 or rate > 1:\n"
            "        raise ValueError('rate must lie between 0 and 1')\n"
            "    x = x * (1 - rate)\n"
            "    return round(x, 2)",
        ),
        (
            "extract",
            "prices",
            "List every product and its price from this text.\n"
            "\n"
            "The shop sells apples for 2 euros a kilo, pears for 3 euros a kilo and plums for 4 euros a kilo. A "
            "basket costs 5 euros, and a jar of honey costs 7 euros.",
        ),
        (
            "extract",
            "who does what",
            "From this text, list each person and what the person does.\n"
            "\n"
            "Maria Keller leads the project. Ahmed Said writes the software and tests it. Lucy Brown talks to the "
            "customers. Peter Novak pays the bills and orders what is needed.",
        ),
        (
            "extract",
            "sentences with numbers",
            "Copy every sentence of this text that contains a number.\n"
            "\n"
            "The bridge is 214 metres long. It was built by two brothers. Every day 9000 people cross it on foot. "
            "At night it is lit by 60 lamps. Many of them are old. The railing is 1.2 metres high.",
        ),
        (
            "extract",
            "answer from the text",
            "Read the text and answer with a quotation from it: when does the train leave, and from which platform?\n"
            "\n"
            "The train to Bergen leaves at 8:25 from platform 4. It has a dining car and a quiet coach. Passengers "
            "with bicycles board at the front. The journey takes six hours and forty minutes.",
        ),
        (
            "translate",
            "English to French",
            "Translate this text to French.\n"
            "\n"
            "The museum is closed on Mondays. Children under twelve do not pay. There is a café on the first floor.",
        ),
        (
            "translate",
            "list to table",
            "Turn this list into a table with two columns.\n"
            "\n"
            "Oslo: Norway\nStockholm: Sweden\nHelsinki: Finland\nCopenhagen: Denmark\nReykjavik: Iceland",
        ),
        (
            "translate",
            "text to JSON",
            "Convert this to JSON with the keys name, age, city and languages.\n"
            "\n"
            "Elena Petrova is 34 years old and lives in Sofia. She speaks Bulgarian, English and Italian.",
        ),
        (
            "translate",
            "English to German",
            "Translate each sentence to German and write it under the English one.\n"
            "\n"
            "Good morning. Where is the station? I would like a ticket to Hamburg. How much does it cost?",
        ),
        ("story", "the last bus", "Write a short story about a woman who misses the last bus home."),
        ("story", "a dragon's garden", "Tell a bedtime story about a small dragon who grows vegetables."),
        ("story", "a letter", "Write a letter from a sailor to his daughter, from the other side of the world."),
        ("story", "dialogue", "Write a dialogue between a clock and a mirror in an empty house."),
    )
)
"""Four prompts of each kind to judge drafters by: fixed before any was trained, and kept out of their corpus.

Nothing about their answers was looked at when they were chosen: some fall into a loop, and are counted apart.
"""

DEFEATING = "defeating"

RACED: tuple[Prompt, ...] = tuple(
    Prompt(kind, title, text)
    for kind, title, text in (
        ("chat", "coffee or tea", "Which has more caffeine, coffee or tea? Explain it in a few sentences."),
        ("code", "count the words", "Write a Python function that counts how often each word occurs in a text."),
        (
            "code",
            "rename a function",
            "Repeat this code exactly, but rename the function to area_of_circle.\n"
            "\n"
            "import math\n"
            "\n"
            "def f(radius):\n"
            "    if radius < 0:\n"
            "        raise ValueError('the radius cannot be negative')\n"
            "    return math.pi * radius ** 2",
        ),
        (
            "rewrite",
            "correct the spelling of a notice",
            "Copy the following text and correct its spelling mistakes. Change nothing else.\n"
            "\n"
            "The swiming pool will be closed from Monday to Thursday, because the water has to be changed. The sauna "
            "stays open as usual. Tickets that were bougt for these days can be used untill the end of the year. "
            "We are sory for the trouble and hope to see you again on Friday morning.",
        ),
        (
            "extract",
            "opening hours",
            "List every place and its opening hours from this text.\n"
            "\n"
            "The bakery opens at six and closes at two. The post office opens at nine and closes at five. The museum "
            "opens at ten and closes at eight on Thursdays. The swimming pool opens at seven and closes at nine.",
        ),
        (
            "translate",
            "English to Italian",
            "Translate this text to Italian.\n"
            "\n"
            "The restaurant is next to the church. It is closed on Tuesdays. The soup is very good, and the bread is "
            "made in the house.",
        ),
        ("story", "the snowed-in train", "Write a short story about a train that is stuck in the snow overnight."),
        (
            "extract",
            "copy the sentences about people",
            "Copy every sentence of this text that names a person.\n"
            "\n"
            "The garden was planned by Ellen Ward. It has three ponds and a wall of stone. Thomas Reed planted the "
            "first apple trees. In spring the paths are wet. Later Julia Stone built a house of glass at the end.",
        ),
        (
            DEFEATING,
            "random numbers",
            "Write a list of forty random whole numbers between 1 and 10000, separated by commas. Do not repeat any.",
        ),
        (
            DEFEATING,
            "a poem without repetition",
            "Write a surreal poem in which no word occurs twice. Use rare words, and begin every line differently.",
        ),
        (
            DEFEATING,
            "invented names",
            "Invent twenty names for planets that nobody has ever heard of. Each must sound different from the others.",
        ),
        (
            DEFEATING,
            "letters backwards",
            "Spell each of these words backwards, with a dash between the letters: lantern, orchid, gravel, thunder, "
            "biscuit, velvet, pilgrim, walnut.",
        ),
    )
)
"""Twelve prompts to race the adaptive policy on; the four of kind ``DEFEATING`` leave a drafter nothing to copy.

Fixed before the policy was tuned (on ``HELD_OUT``), and kept out of all training.
"""
