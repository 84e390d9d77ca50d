"""No loop at all: a classifier in scikit-learn's Pipeline, its method and epsilon chosen by GridSearchCV."""

from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from wordward.sklearn import TextClassifier

PRAISE, BLAME = ["warm", "funny", "bright", "lovely", "clever"], ["dull", "cold", "bland", "tired", "empty"]
texts, labels = [], []
for label, words in {"good": PRAISE, "bad": BLAME}.items():
    for thing in ("film", "story", "ending", "cast"):
        texts += [f"The {thing} was {one} and {other}" for one in words for other in words]
        labels += [label] * len(words) ** 2


def lower(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


small = {"dim": 16, "hidden": 16, "head": 8, "word_dropout": 0.0, "head_dropout": 0.0}
quick = {"batch_size": 32, "learning_rate": 0.03, "epochs": 5, "patience": 2}
pipeline = Pipeline([("clean", FunctionTransformer(lower)), ("classify", TextClassifier(**small, **quick))])
grid = {"classify__method": ["advt", "iadvt"], "classify__epsilon": [1.0, 5.0]}
search = GridSearchCV(pipeline, grid, cv=StratifiedKFold(2, shuffle=True, random_state=0))
search.fit(texts, labels)

print(f"chosen: {search.best_params_}, right in {search.best_score_:.0%} of the texts held out")
print(f"training error {(search.predict(texts) != labels).mean():.0%}")
for place in search.best_estimator_["classify"].explain(["the story was lovely"])[0].places:
    print(f"{place.word:>6} is pulled toward {place.pull.toward if place.pull else 'nothing'}")
